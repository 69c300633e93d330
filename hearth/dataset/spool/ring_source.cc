#include "hearth/dataset/spool/ring_source.h"

#include <algorithm>
#include <utility>

namespace hearth::dataset {

using ring::EntryKind;

RingSource::RingSource(ring::RingEnd ring, double timeout_s)
    : reader_(std::move(ring)), timeout_s_(timeout_s) {}

bool RingSource::Advance() {
  if (batch_ != nullptr && row_ < batch_->rows()) return true;
  batch_.reset();
  if (at_mark_ || ended_) return false;
  const ring::RingEntry entry = reader_.Next(Deadline::After(timeout_s_));
  at_mark_ = entry.kind == EntryKind::kFlush;
  ended_ = entry.kind == EntryKind::kEnd;
  if (entry.kind != EntryKind::kBatch) return false;
  // Copies the batch, because the minibatch may outlive the entry, whose space in the ring the
  // feeder may reuse at once.
  batch_ = batch::CopyBatch(entry.image);
  row_ = 0;
  reader_.Release();
  // Reads the next entry if this batch has no rows.
  return Advance();
}

int64_t RingSource::Next(int64_t max_rows, Minibatch* out) {
  out->Clear();
  while (out->size() < max_rows && Advance()) {
    const int64_t end = std::min(batch_->rows(), row_ + max_rows - out->size());
    for (; row_ < end; ++row_) out->rows.push_back({batch_.get(), row_});
    out->keep_alive.push_back(batch_);
  }
  return out->size();
}

void RingSource::NextEpoch() {
  // Reads up to the mark: the next epoch must not begin with unread rows of this one.
  while (Advance()) batch_.reset();
  at_mark_ = false;
  ++epoch_;
}

}  // namespace hearth::dataset
