#include "hearth/dataset/spool/spool_source.h"

#include <algorithm>
#include <utility>

namespace hearth::dataset {

SpoolSource::SpoolSource(std::shared_ptr<Spool> spool, ReplayOptions options)
    : spool_(std::move(spool)), options_(options) {}

int64_t SpoolSource::Next(int64_t max_rows, Minibatch* out) {
  out->Clear();
  out->keep_alive.push_back(spool_);
  if (epoch_ == 0) {
    TakeArriving(max_rows, out);
    // A short minibatch is the epoch's last one, so this reports a file that changed during the
    // epoch.
    if (out->size() < max_rows) spool_->CheckFiles();
    spool_->CountRead(out->size());
    return out->size();
  }
  const int64_t end = std::min(rows_, position_ + max_rows);
  for (; position_ < end; ++position_) {
    out->rows.push_back(spool_->RowAt(order_ ? order_->At(position_) : position_));
  }
  if (out->size() < max_rows) spool_->CheckFiles();
  if (order_) Prefetch(*out);
  spool_->CountRead(out->size());
  return out->size();
}

// Prefetches all rows of a minibatch, so that their cache misses overlap: shuffled rows are spread
// over the spool, and each small row would otherwise incur a separate miss.
void SpoolSource::Prefetch(const Minibatch& minibatch) {
  for (const Minibatch::Row& row : minibatch.rows) {
    for (const batch::ColumnView& column : row.batch->columns()) column.PrefetchEntry(row.index);
  }
  for (const Minibatch::Row& row : minibatch.rows) {
    for (const batch::ColumnView& column : row.batch->columns()) column.PrefetchValue(row.index);
  }
}

void SpoolSource::TakeArriving(int64_t max_rows, Minibatch* out) {
  while (out->size() < max_rows) {
    const batch::BatchView* batch = spool_->WaitBatch(batch_);
    if (batch == nullptr) return;
    const int64_t end = std::min(batch->rows(), row_ + max_rows - out->size());
    for (; row_ < end; ++row_) out->rows.push_back({batch, row_});
    if (row_ == batch->rows()) {
      ++batch_;
      row_ = 0;
    }
  }
}

void SpoolSource::NextEpoch() {
  rows_ = spool_->WaitComplete();
  spool_->CheckFiles();
  ++epoch_;
  position_ = 0;
  if (options_.shuffle) order_.emplace(rows_, options_.seed, static_cast<uint64_t>(epoch_));
}

}  // namespace hearth::dataset
