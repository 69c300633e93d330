// The rows of a feed that a node keeps on its disk, and later epochs of them.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "hearth/batch/kept_batches.h"
#include "hearth/partitions/partition.h"

namespace hearth::partitions {

// One thread writes; once all rows came, any may read.
class KeptRows {
 public:
  explicit KeptRows(std::string directory) : batches_(std::move(directory)) {}

  void Add(std::span<const std::byte> image, RowFormat format);
  // The last batch ends with a row.
  void Commit() { complete_ = formats_.size(); }
  // The task died within a row: drops the row's first part, which will be sent again.
  void Rollback();

  size_t size() const { return complete_; }  // batches of whole rows
  const batch::BatchView& at(size_t index) const { return batches_.at(index); }
  RowFormat format(size_t index) const { return formats_.at(index); }
  // Announces that a batch is about to be read again.
  void CountRead(size_t index) { batches_.CountTouched(bytes_.at(index)); }

 private:
  batch::KeptBatches batches_;
  std::vector<RowFormat> formats_;
  std::vector<size_t> bytes_;
  size_t complete_ = 0;
};

// Kept rows once more, `times` over. As Partition.
class Replay : public Partition {
 public:
  // `kept`: null if nothing was kept. `report` tells the driver.
  Replay(std::string feed, std::shared_ptr<KeptRows> kept, int64_t times, Tell report);

  std::optional<Batch> Read() override;
  void Settle(int64_t count) override;
  void Refuse(const std::string& reason) override;
  void Drop() override;
  void Lose() override {}  // it has no feed task

 private:
  void TellDriver(const std::string& event);

  const std::shared_ptr<KeptRows> kept_;
  const Tell report_;
  int64_t times_left_;
  size_t next_ = 0;
  std::atomic<int64_t> left_;  // batches that are not used up
  std::chrono::steady_clock::time_point told_;
};

}  // namespace hearth::partitions
