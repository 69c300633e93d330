// Counts a feed's rows on its node; the driver's Ledger keeps the counts.
#pragma once

#include <chrono>
#include <cstdint>
#include <deque>
#include <limits>
#include <mutex>
#include <optional>
#include <string>

#include "hearth/partitions/partition.h"

namespace hearth::partitions {

// What a program has taken of one feed, and what of it is safe: a partition is safe once all of its
// rows were taken before a Commit(). Any thread may use it.
class RowCount {
 public:
  // `report` tells the driver.
  explicit RowCount(Tell report) : report_(std::move(report)) {}

  // The program was given `rows` more of a partition.
  void Take(Partition& partition, int64_t rows);
  // No more rows of a partition come here: all were taken, or their feed task is gone.
  void Complete(const Partition& partition);
  // The program has waited for rows.
  void Wait(std::chrono::duration<double> time);
  // How many rows were taken so far.
  int64_t taken() const;
  // The first `rows` of them are safe; by default all.
  void Commit(int64_t rows = std::numeric_limits<int64_t>::max());

 private:
  struct End {
    int64_t rows;  // taken by then
    std::string feed;
    int partition;
    int64_t claim;
  };

  void TellRows(const Partition& partition);
  void TellSafe();

  const Tell report_;
  mutable std::mutex mutex_;
  int64_t taken_ = 0;
  double waited_s_ = 0;
  int64_t safe_ = 0;          // of the rows taken, in their order
  std::deque<End> complete_;  // partitions that came to an end and are not safe
  std::optional<std::chrono::steady_clock::time_point> told_;
};

}  // namespace hearth::partitions
