#include "hearth/caffe/data/prefetcher.h"

#include <algorithm>
#include <utility>

namespace hearth::caffe {

void DataBatch::Top::Reshape(Shape new_shape) {
  shape = std::move(new_shape);
  int64_t count = 1;
  for (const int64_t dim : shape) count *= dim;
  values.resize(count);
}

Prefetcher::Prefetcher(int depth, std::unique_ptr<BatchSource> source)
    : source_(std::move(source)) {
  for (int i = 0; i < std::max(1, depth); ++i) free_.push_back(std::make_unique<DataBatch>());
  // Last, since the thread uses all other members.
  thread_ = Thread("prefetch", [this] { Run(); });
}

Prefetcher::~Prefetcher() {
  {
    const std::lock_guard lock(mutex_);
    stop_ = true;
  }
  // thread_, the last member, then joins before the others are destroyed.
  changed_.notify_all();
}

// Batches go round: the thread fills one of free_ and puts it into full_; the caller has current_,
// which returns to free_ with the next call. So `depth` batches are ready or being filled, plus one
// in use.
const DataBatch& Prefetcher::Next() {
  std::unique_lock lock(mutex_);
  // A requested epoch must have begun: until then, `full_` and `over_` are those of the old one.
  changed_.wait(lock,
                [this] { return error_ || (next_epochs_ == 0 && (!full_.empty() || over_)); });
  // Full batches before the error: those that were read before the failure are still delivered.
  if (!full_.empty()) {
    // The previous batch was valid until now.
    free_.push_back(std::move(current_));
    current_ = std::move(full_.front());
    full_.pop_front();
    changed_.notify_all();
  } else if (error_) {
    std::rethrow_exception(error_);
  } else {
    current_->rows.Clear();
    current_->invalid_rows.clear();
  }
  return *current_;
}

void Prefetcher::NextEpoch() {
  const std::lock_guard lock(mutex_);
  if (error_) std::rethrow_exception(error_);
  // The thread may be filling a batch of the old epoch; it discards that one when it sees the
  // request.
  ++next_epochs_;
  for (auto& batch : full_) free_.push_back(std::move(batch));
  full_.clear();
  changed_.notify_all();
}

void Prefetcher::Run() {
  std::unique_lock lock(mutex_);
  try {
    while (RunOnce(lock)) changed_.notify_all();
  } catch (...) {
    // The source threw while the lock was released.
    if (!lock.owns_lock()) lock.lock();
    error_ = std::current_exception();
    changed_.notify_all();
  }
}

// Returns false when the thread must stop. The lock is released while the source works: only this
// thread calls it, and it may take long.
bool Prefetcher::RunOnce(std::unique_lock<std::mutex>& lock) {
  changed_.wait(lock, [this] { return stop_ || next_epochs_ > 0 || (!over_ && !free_.empty()); });
  if (stop_) return false;
  if (next_epochs_ > 0) {
    lock.unlock();
    source_->NextEpoch();
    lock.lock();
    // Only now: Next() must not return before the source is in the new epoch.
    --next_epochs_;
    over_ = false;
    return true;
  }
  std::unique_ptr<DataBatch> batch = std::move(free_.front());
  free_.pop_front();
  lock.unlock();
  batch->rows.Clear();
  batch->invalid_rows.clear();
  const bool filled = source_->Fill(batch.get());
  lock.lock();
  // The last batch of an epoch is delivered as well: it may report invalid rows.
  over_ = !filled;
  (next_epochs_ > 0 ? free_ : full_).push_back(std::move(batch));
  return true;
}

}  // namespace hearth::caffe
