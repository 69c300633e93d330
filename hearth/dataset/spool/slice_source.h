// Minibatches of a range of a complete spool, in arrival order. Used for a rank's validation rows.
#pragma once

#include <cstdint>
#include <memory>
#include <utility>

#include "hearth/dataset/spool/minibatch.h"
#include "hearth/dataset/spool/spool.h"

namespace hearth::dataset {

// A range of a spool's rows. An epoch is one pass over the range; NextEpoch() returns to its first
// row.
class SliceSource : public MinibatchSource {
 public:
  // Starts with an empty range. Waits until the spool is complete; throws the errors of
  // Spool::WaitComplete.
  explicit SliceSource(std::shared_ptr<Spool> spool)
      : spool_(std::move(spool)), rows_(spool_->WaitComplete()) {}

  int64_t rows() const { return rows_; }

  // Selects rows begin, begin + 1, ..., begin + count - 1, each modulo rows(): a range may wrap
  // around.
  void SetRange(int64_t begin, int64_t count) {
    begin_ = position_ = begin;
    end_ = begin + (rows_ == 0 ? 0 : count);
  }

  int64_t Next(int64_t max_rows, Minibatch* out) override {
    out->Clear();
    out->keep_alive.push_back(spool_);
    for (; position_ < end_ && out->size() < max_rows; ++position_) {
      out->rows.push_back(spool_->RowAt(position_ % rows_));
    }
    spool_->CountRead(out->size());
    return out->size();
  }

  void NextEpoch() override {
    ++epoch_;
    position_ = begin_;
  }

  int64_t epoch() const override { return epoch_; }

 private:
  std::shared_ptr<Spool> spool_;
  int64_t rows_;
  int64_t begin_ = 0;
  int64_t end_ = 0;
  int64_t position_ = 0;
  int64_t epoch_ = 0;
};

}  // namespace hearth::dataset
