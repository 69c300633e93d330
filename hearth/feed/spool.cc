#include "hearth/feed/spool.h"

#include <algorithm>
#include <bit>
#include <utility>

#include "hearth/base/error.h"

namespace hearth::feed {

Spool::Spool(RingEnd ring, const SpoolOptions& options)
    : options_(options),
      reader_(std::move(ring)),
      file_(options.directory),
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
  BatchView batch(file_.Append(image));
  const std::lock_guard lock(mutex_);
  batches_.push_back(std::move(batch));
  const BatchView& kept = batches_.back();
  if (kept.rows() > 0) starts_.push_back({rows_, &kept});
  rows_ += kept.rows();
  changed_.notify_all();
}

template <typename Ready>
void Spool::Wait(std::unique_lock<std::mutex>& lock, Deadline deadline, Ready ready) {
  const auto done = [&] { return ready() || error_ != nullptr; };
  const bool in_time = changed_.wait_until(lock, deadline.at(), done);
  if (ready()) return;
  if (error_ != nullptr) std::rethrow_exception(error_);
  Require(in_time, ErrorCode::kDeadlineExceeded,
          "no more rows came from the feeder before the deadline; {} rows are there", rows_);
}

const BatchView* Spool::WaitBatch(size_t index) {
  std::unique_lock lock(mutex_);
  Wait(lock, Deadline::After(options_.timeout_s),
       [&] { return complete_ || batches_.size() > index; });
  return batches_.size() > index ? &batches_[index] : nullptr;
}

int64_t Spool::WaitComplete(Deadline deadline) {
  std::unique_lock lock(mutex_);
  Wait(lock, deadline, [&] { return complete_; });
  return rows_;
}

// A binary search without branches: shuffled positions would mispredict every one of them.
Minibatch::Row Spool::RowAt(int64_t position) const {
  const size_t count = starts_.size();
  size_t found = 0;
  for (size_t step = std::bit_floor(count); step > 0; step >>= 1) {
    const size_t next = found + step;
    const bool right = next < count && starts_[std::min(next, count - 1)].first_row <= position;
    found = right ? next : found;
  }
  return {starts_[found].batch, position - starts_[found].first_row};
}

}  // namespace hearth::feed
