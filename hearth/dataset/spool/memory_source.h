#pragma once

#include <memory>
#include <utility>
#include <vector>

#include "hearth/dataset/spool/minibatch.h"

namespace hearth::dataset {

// A source of batches that are already in memory, in the same order in every epoch.
class MemorySource : public MinibatchSource {
 public:
  explicit MemorySource(std::vector<std::shared_ptr<const batch::BatchView>> batches)
      : batches_(std::move(batches)) {}

  int64_t Next(int64_t max_rows, Minibatch* out) override {
    out->Clear();
    while (out->size() < max_rows && batch_ < batches_.size()) {
      const auto& batch = batches_[batch_];
      if (row_ == batch->rows()) {
        ++batch_;
        row_ = 0;
        continue;
      }
      if (out->rows.empty() || out->rows.back().batch != batch.get()) {
        out->keep_alive.push_back(batch);
      }
      out->rows.push_back({batch.get(), row_++});
    }
    return out->size();
  }

  void NextEpoch() override {
    ++epoch_;
    batch_ = 0;
    row_ = 0;
  }

  int64_t epoch() const override { return epoch_; }

 private:
  std::vector<std::shared_ptr<const batch::BatchView>> batches_;
  size_t batch_ = 0;
  int64_t row_ = 0;
  int64_t epoch_ = 0;
};

}  // namespace hearth::dataset
