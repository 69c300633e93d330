#include "hearth/feed/spool.h"

#include <algorithm>
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
  const int64_t rows = batch.rows();
  entries_.push_back({rows_, std::move(batch)});
  rows_ += rows;
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
       [&] { return complete_ || entries_.size() > index; });
  return entries_.size() > index ? &entries_[index].batch : nullptr;
}

int64_t Spool::WaitComplete(Deadline deadline) {
  std::unique_lock lock(mutex_);
  Wait(lock, deadline, [&] { return complete_; });
  return rows_;
}

Minibatch::Row Spool::RowAt(int64_t position) const {
  const auto after =
      std::upper_bound(entries_.begin(), entries_.end(), position,
                       [](int64_t wanted, const Entry& entry) { return wanted < entry.first_row; });
  const Entry& entry = *std::prev(after);
  return {&entry.batch, position - entry.first_row};
}

}  // namespace hearth::feed
