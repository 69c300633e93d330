// Counts a feed's rows on its node; the driver's Ledger collects the counts.
#pragma once

#include <chrono>
#include <cstdint>
#include <deque>
#include <limits>
#include <mutex>
#include <optional>
#include <string>

#include "hearth/feed/partition.h"

namespace hearth::feed {

// Tracks the rows that a program has taken from one feed, and which of them are safe. A partition
// is safe once all of its rows were taken before a Commit(). Thread-safe.
class RowCount {
 public:
  // `report` sends events to the driver.
  explicit RowCount(Send report) : report_(std::move(report)) {}

  // Counts `rows` more delivered rows of a partition.
  void Take(Partition& partition, int64_t rows);
  // Call when a partition has ended at this node: all rows were taken, or its feed task is gone.
  void Complete(const Partition& partition);
  // Adds time that the program has waited for rows.
  void Wait(std::chrono::duration<double> time);
  // Number of rows taken so far.
  int64_t taken() const;
  // Marks the first `rows` of the taken rows as safe, by default all.
  void Commit(int64_t rows = std::numeric_limits<int64_t>::max());

 private:
  // End of a partition, as a position among all rows taken.
  struct End {
    int64_t rows;  // number of rows taken up to the end
    std::string feed;
    int partition;
    int64_t claim;
  };

  void ReportRows(const Partition& partition);
  void ReportSafe();

  const Send report_;
  mutable std::mutex mutex_;
  int64_t taken_ = 0;
  double waited_s_ = 0;
  int64_t safe_ = 0;          // number of safe rows; these are the first ones taken
  std::deque<End> complete_;  // ended partitions that are not safe yet
  std::optional<std::chrono::steady_clock::time_point> reported_at_;
};

}  // namespace hearth::feed
