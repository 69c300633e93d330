#include "hearth/dataset/spool/spool.h"

#include <algorithm>
#include <utility>

#include "hearth/base/error.h"
#include "hearth/batch/row_hash.h"
#include "hearth/dataset/order/shuffled_order.h"

namespace hearth::dataset {
namespace {

using batch::BatchView;

// A page fault also maps the surrounding pages, by default 64 KiB in Linux (fault_around_bytes).
constexpr uint64_t kPagesAroundARead = 64 << 10;

}  // namespace

Spool::Spool(ring::RingEnd ring, const SpoolOptions& options)
    : options_(options),
      reader_(std::move(ring)),
      batches_(options.directory, options.resident_bytes),
      thread_("feed-spool", [this] { Drain(); }) {}

Spool::~Spool() {
  Stop();
  thread_.Join();
}

void Spool::Drain() {
  try {
    for (;;) {
      // The previous entry is now in the file.
      reader_.Release();
      while (!reader_.HasNext() && HashWhileIdle()) {
      }
      const ring::RingEntry entry = reader_.Next(Deadline::After(options_.timeout_s));
      if (entry.kind == ring::EntryKind::kEnd) break;
      if (entry.kind == ring::EntryKind::kBatch) Store(entry.image);
    }
    std::unique_lock lock(mutex_);
    // Done before complete_ is set, because RowAt() then reads the index without the lock.
    IndexStrides();
    complete_ = true;
    lock.unlock();
    changed_.notify_all();
    reader_.Close();
    // Hashes the rest only after the ring is closed, so that the feeder does not wait for it.
    HashTo(starts_.size(), false);
  } catch (...) {
    // Stores the exception for readers, whose waits rethrow it, because this thread has no caller.
    const std::lock_guard lock(mutex_);
    error_ = std::current_exception();
  }
  changed_.notify_all();
  // The drain has stopped, so the feeder must not wait for it.
  reader_.Close();
}

// Hashes the rows at once, while they are in the cache, if their bytes are all in the image and all
// earlier rows are hashed. Rows with values in other files are hashed when the drain is idle,
// because reading those files here would delay the first rows of training.
void Spool::Store(std::span<const std::byte> image) {
  const BatchView& stored = batches_.Append(image);
  std::unique_lock lock(mutex_);
  ++arrived_;
  // An empty batch counts for WaitBatch(), but contains no row that the index could find.
  if (stored.rows() > 0) starts_.push_back({rows_, &stored});
  rows_ += stored.rows();
  bytes_ += image.size() + stored.file_bytes();
  const size_t batches = starts_.size();
  const bool all_but_this = hashed_ + 1 == batches;
  lock.unlock();
  changed_.notify_all();
  if (all_but_this && stored.file_bytes() == 0) HashTo(batches, false);
}

// A pending request for a digest. While one exists, the drain stops hashing after its current
// batch.
class Spool::DigestRequest {
 public:
  explicit DigestRequest(Spool* spool) : spool_(spool) { Add(1); }
  ~DigestRequest() { Add(-1); }

 private:
  void Add(int number) {
    {
      const std::lock_guard lock(spool_->mutex_);
      spool_->digest_requests_ += number;
    }
    spool_->changed_.notify_all();
  }
  Spool* const spool_;
};

// Called by the drain thread while no rows arrive; hashes one batch. Returns false if there is no
// batch to hash or another thread is hashing; the drain then waits for rows and tries again after
// receiving some.
bool Spool::HashWhileIdle() {
  std::unique_lock lock(mutex_);
  if (hashed_ == starts_.size() || stopped_ || hashing_ || digest_requests_ > 0) return false;
  HashNext(lock);
  return true;
}

// Called by any thread, but only one hashes at a time. Returns early after Stop().
void Spool::HashTo(size_t batches, bool for_digest) {
  std::unique_lock lock(mutex_);
  while (hashed_ < batches && !stopped_) {
    if (hashing_ || (!for_digest && digest_requests_ > 0)) {
      changed_.wait(lock);
    } else {
      HashNext(lock);
    }
  }
}

void Spool::HashNext(std::unique_lock<std::mutex>& lock) {
  const BatchView& batch = *starts_[hashed_].batch;
  uint64_t hash = starts_[hashed_].hash = hash_;
  // hashing_ reserves the batch for this thread, so that the lock, which readers need, can be
  // released. The vector may grow in the meantime, but the batch does not move.
  hashing_ = true;
  lock.unlock();
  std::exception_ptr failure;
  try {
    batches_.CountTouched(batch.file_bytes());
    hash = batch::HashRows(hash, batch.columns(), batch.rows());
  } catch (...) {
    failure = std::current_exception();
  }
  lock.lock();
  hashing_ = false;
  changed_.notify_all();
  if (failure != nullptr) std::rethrow_exception(failure);
  // hash_ and hashed_ change only after success, so after an error a later call hashes the batch
  // again.
  hash_ = hash;
  ++hashed_;
}

template <typename Ready>
void Spool::Wait(std::unique_lock<std::mutex>& lock, Deadline deadline, Ready ready) {
  const auto done = [&] { return ready() || stopped_ || error_ != nullptr; };
  const bool in_time = changed_.wait_until(lock, deadline.at(), done);
  // Checked first, because rows that have arrived can be used even after an error.
  if (ready()) return;
  Require(!stopped_, ErrorCode::kAborted, "the spool was stopped");
  if (error_ != nullptr) std::rethrow_exception(error_);
  Require(in_time, ErrorCode::kDeadlineExceeded,
          "deadline exceeded while waiting for the feeder's rows; {} rows arrived", rows_);
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
  rows = std::min(rows, rows_);
  const auto after =
      std::lower_bound(starts_.begin(), starts_.end(), rows,
                       [](const Start& start, int64_t row) { return start.first_row < row; });
  const auto batches = static_cast<size_t>(after - starts_.begin());
  lock.unlock();
  return DigestIn(batches, rows);
}

Spool::Digest Spool::DigestUpTo(const Minibatch::Row& row) {
  std::unique_lock lock(mutex_);
  const auto found = std::find_if(starts_.begin(), starts_.end(),
                                  [&](const Start& start) { return start.batch == row.batch; });
  Require(found != starts_.end(), ErrorCode::kInternal, "the row belongs to another spool");
  const auto batches = static_cast<size_t>(found - starts_.begin()) + 1;
  const int64_t rows = found->first_row + row.index + 1;
  lock.unlock();
  return DigestIn(batches, rows);
}

// Digest of the first `rows` rows, the last of which is in batch `batches` - 1.
Spool::Digest Spool::DigestIn(size_t batches, int64_t rows) {
  if (batches == 0) return {0, 0};
  const DigestRequest first(this);
  HashTo(batches - 1, true);
  batches_.CheckFiles();
  std::unique_lock lock(mutex_);
  Require(hashed_ + 1 >= batches, ErrorCode::kAborted, "the spool was stopped");
  // Copied, because the vector may grow while the lock is released.
  const Start last = starts_[batches - 1];
  const uint64_t before = hashed_ + 1 == batches ? hash_ : last.hash;
  lock.unlock();
  batches_.CountTouched(last.batch->file_bytes());
  return {rows, batch::HashRows(before, last.batch->columns(), rows - last.first_row)};
}

void Spool::CountRead(int64_t rows) {
  uint64_t row_bytes = 0;
  {
    const std::lock_guard lock(mutex_);
    if (starts_.empty()) return;
    // A shuffled block of rows causes at least one page fault per column.
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

// Batches are seldom shorter than a stride, so the loop rarely iterates. In a binary search for
// shuffled positions, every branch would be mispredicted.
Minibatch::Row Spool::RowAt(int64_t position) const {
  size_t found = strides_[static_cast<size_t>(position / kStride)];
  while (found + 1 < starts_.size() && starts_[found + 1].first_row <= position) ++found;
  return {starts_[found].batch, position - starts_[found].first_row};
}

}  // namespace hearth::dataset
