// Rows of a feed spooled on a node's disk, and their replay in later epochs.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "hearth/batch/spilled_batches.h"
#include "hearth/feed/partition.h"

namespace hearth::feed {

// Rows of a feed in a file. One thread writes; after the last row, any thread may read.
class SpooledRows {
 public:
  explicit SpooledRows(std::string directory) : batches_(std::move(directory)) {}

  void Add(std::span<const std::byte> image, RowFormat format);
  // Marks the last batch as ending with a complete row.
  void Commit() { complete_ = formats_.size(); }
  // Called if the feed task died within a row. Drops the part of the row that has arrived, because
  // the whole row will be sent again.
  void Rollback();

  size_t size() const { return complete_; }  // batches of complete rows
  const batch::BatchView& at(size_t index) const { return batches_.at(index); }
  RowFormat format(size_t index) const { return formats_.at(index); }
  // Call before reading a batch again.
  void CountRead(size_t index) { batches_.CountTouched(bytes_.at(index)); }

 private:
  batch::SpilledBatches batches_;
  std::vector<RowFormat> formats_;
  std::vector<size_t> bytes_;
  size_t complete_ = 0;
};

// A partition of spooled rows, which are read `times` times.
class Replay : public Partition {
 public:
  // `spooled` is null if there are no spooled rows. `report` sends events to the driver.
  Replay(std::string feed, std::shared_ptr<SpooledRows> spooled, int64_t times, Send report);

  std::optional<Batch> Read() override;
  void Settle(int64_t count) override;
  void Refuse(const std::string& reason) override;
  void Drop() override;
  void Lose() override {}  // a replay has no feed task

 private:
  void ReportToDriver(const std::string& event);

  const std::shared_ptr<SpooledRows> spooled_;
  const Send report_;
  int64_t times_left_;
  size_t next_ = 0;
  std::atomic<int64_t> left_;  // batches not settled yet
  std::chrono::steady_clock::time_point reported_at_;
};

}  // namespace hearth::feed
