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
  // Started last, because the thread uses all other members.
  thread_ = Thread("prefetch", [this] { Run(); });
}

Prefetcher::~Prefetcher() {
  {
    const std::lock_guard lock(mutex_);
    stop_ = true;
  }
  // thread_ is the last member, so the thread is joined before the other members are destroyed.
  changed_.notify_all();
}

// Batches are recycled: the thread fills a batch from free_ and appends it to full_. The caller
// uses current_, which returns to free_ on the next call. So up to `depth` batches are ready or
// being filled, and one more is in use.
const DataBatch& Prefetcher::Next() {
  std::unique_lock lock(mutex_);
  // If NextEpoch() was called, waits until that epoch has begun; before, `full_` and `over_`
  // describe the old epoch.
  changed_.wait(lock,
                [this] { return error_ || (next_epochs_ == 0 && (!full_.empty() || over_)); });
  // Batches that were read before a failure are delivered before the error.
  if (!full_.empty()) {
    // The caller's previous batch is valid until this point.
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
  // The thread may still be filling a batch of the old epoch; it discards that batch when it sees
  // that next_epochs_ is positive.
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
    // The lock is not held if the source threw.
    if (!lock.owns_lock()) lock.lock();
    error_ = std::current_exception();
    changed_.notify_all();
  }
}

// Handles one request or fills one batch. Returns false when the thread must stop. Releases the
// lock while the source works, which may take long; only this thread calls the source.
bool Prefetcher::RunOnce(std::unique_lock<std::mutex>& lock) {
  changed_.wait(lock, [this] { return stop_ || next_epochs_ > 0 || (!over_ && !free_.empty()); });
  if (stop_) return false;
  if (next_epochs_ > 0) {
    lock.unlock();
    source_->NextEpoch();
    lock.lock();
    // Decremented only now, because Next() must not return before the source is in the new epoch.
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
  // The last batch of an epoch is delivered even if it is empty, since it may report invalid rows.
  over_ = !filled;
  (next_epochs_ > 0 ? free_ : full_).push_back(std::move(batch));
  return true;
}

}  // namespace hearth::caffe
