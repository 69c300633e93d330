#include "hearth/feed/spool.h"

#include <algorithm>
#include <utility>

#include "hearth/base/error.h"
#include "hearth/feed/row_hash.h"
#include "hearth/feed/shuffled_order.h"

namespace hearth::feed {
namespace {

constexpr uint64_t kPagesAroundARead = 64 << 10;  // /sys/kernel/debug/fault_around_bytes

}  // namespace

Spool::Spool(RingEnd ring, const SpoolOptions& options)
    : options_(options),
      reader_(std::move(ring)),
      batches_(options.directory, options.resident_bytes),
      thread_("feed-spool", [this] { Drain(); }) {}

Spool::~Spool() {
  reader_.Close();
  thread_.Join();
}

void Spool::Drain() {
  try {
    for (;;) {
      const RingEntry entry = reader_.Next(Deadline::After(options_.timeout_s));
      if (entry.kind == EntryKind::kEnd) break;
      if (entry.kind == EntryKind::kBatch) Keep(entry.image);
    }
    const std::lock_guard lock(mutex_);
    IndexStrides();
    complete_ = true;
  } catch (...) {
    // Waits of the readers rethrow it; here nobody would see it.
    const std::lock_guard lock(mutex_);
    error_ = std::current_exception();
  }
  changed_.notify_all();
  // A feeder must not wait for a drain that has stopped.
  reader_.Close();
}

void Spool::Keep(std::span<const std::byte> image) {
  const BatchView& kept = batches_.Append(image);
  const uint64_t hash = HashRows(hash_, kept.columns(), kept.rows());
  const std::lock_guard lock(mutex_);
  ++arrived_;
  if (kept.rows() > 0) starts_.push_back({rows_, &kept, hash_});
  hash_ = hash;
  rows_ += kept.rows();
  bytes_ += image.size();
  changed_.notify_all();
}

template <typename Ready>
void Spool::Wait(std::unique_lock<std::mutex>& lock, Deadline deadline, Ready ready) {
  const auto done = [&] { return ready() || stopped_ || error_ != nullptr; };
  const bool in_time = changed_.wait_until(lock, deadline.at(), done);
  if (ready()) return;
  Require(!stopped_, ErrorCode::kAborted, "no more rows are wanted");
  if (error_ != nullptr) std::rethrow_exception(error_);
  Require(in_time, ErrorCode::kDeadlineExceeded,
          "no more rows came from the feeder before the deadline; {} rows are there", rows_);
}

void Spool::Stop() {
  {
    const std::lock_guard lock(mutex_);
    stopped_ = true;
  }
  changed_.notify_all();
  reader_.Close();
}

const BatchView* Spool::WaitBatch(size_t index) {
  std::unique_lock lock(mutex_);
  Wait(lock, Deadline::After(options_.timeout_s), [&] { return complete_ || arrived_ > index; });
  return arrived_ > index ? &batches_.at(index) : nullptr;
}

int64_t Spool::WaitComplete(Deadline deadline) {
  std::unique_lock lock(mutex_);
  Wait(lock, deadline, [&] { return complete_; });
  return rows_;
}

Spool::Digest Spool::DigestOf(int64_t rows) {
  std::unique_lock lock(mutex_);
  Wait(lock, Deadline::After(options_.timeout_s), [&] { return complete_ || rows_ >= rows; });
  if (rows >= rows_) return {rows_, hash_};
  const auto after =
      std::upper_bound(starts_.begin(), starts_.end(), rows,
                       [](int64_t row, const Start& start) { return row < start.first_row; });
  const Start start = *std::prev(after);
  lock.unlock();
  return {rows, HashRows(start.hash, start.batch->columns(), rows - start.first_row)};
}

Spool::Digest Spool::DigestUpTo(const Minibatch::Row& row) {
  std::unique_lock lock(mutex_);
  const auto found = std::find_if(starts_.begin(), starts_.end(),
                                  [&](const Start& start) { return start.batch == row.batch; });
  Require(found != starts_.end(), ErrorCode::kInternal, "the row belongs to another spool");
  const Start start = *found;
  lock.unlock();
  return {start.first_row + row.index + 1,
          HashRows(start.hash, start.batch->columns(), row.index + 1)};
}

void Spool::CountRead(int64_t rows) {
  uint64_t row_bytes = 0;
  {
    const std::lock_guard lock(mutex_);
    if (starts_.empty()) return;
    // Linux maps the pages around one that is read, for every column of a shuffled block of rows.
    const uint64_t columns = starts_.front().batch->columns().size();
    row_bytes = std::max(bytes_ / static_cast<uint64_t>(rows_),
                         columns * kPagesAroundARead / ShuffledOrder::kBlockRows);
  }
  batches_.CountTouched(row_bytes * static_cast<uint64_t>(rows));
}

void Spool::IndexStrides() {
  strides_.reserve(static_cast<size_t>(rows_ / kStride + 1));
  uint32_t batch = 0;
  for (int64_t row = 0; row < rows_; row += kStride) {
    while (batch + 1 < starts_.size() && starts_[batch + 1].first_row <= row) ++batch;
    strides_.push_back(batch);
  }
}

// Batches are seldom shorter than a stride, so the loop rarely turns: a search from the middle
// would mispredict every step of a shuffled position.
Minibatch::Row Spool::RowAt(int64_t position) const {
  size_t found = strides_[static_cast<size_t>(position / kStride)];
  while (found + 1 < starts_.size() && starts_[found + 1].first_row <= position) ++found;
  return {starts_[found].batch, position - starts_[found].first_row};
}

}  // namespace hearth::feed
