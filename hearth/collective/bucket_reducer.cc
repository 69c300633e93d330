#include "hearth/collective/bucket_reducer.h"

#include <fmt/format.h>

#include <algorithm>
#include <condition_variable>
#include <exception>
#include <mutex>
#include <utility>

#include "hearth/base/error.h"
#include "hearth/base/thread.h"
#include "hearth/collective/group.h"

namespace hearth::collective {

std::vector<Bucket> MakeBuckets(const std::vector<size_t>& piece_counts, size_t bucket_bytes) {
  const size_t limit = std::max<size_t>(bucket_bytes / sizeof(float), 1);
  size_t begin = 0;
  for (const size_t count : piece_counts) begin += count;
  std::vector<Bucket> buckets;
  for (size_t piece = piece_counts.size(); piece-- > 0;) {
    const size_t count = piece_counts[piece];
    begin -= count;
    if (buckets.empty() || buckets.back().elements.size() + count > limit) {
      buckets.push_back({piece, piece + 1, {begin, begin + count}});
    } else {
      buckets.back().first_piece = piece;
      buckets.back().elements.begin = begin;
    }
  }
  return buckets;
}

class BucketReducer::Impl {
 public:
  Impl(Group& group, float* buffer, const std::vector<size_t>& piece_counts,
       const BucketReducerOptions& options)
      : group_(group),
        buffer_(buffer),
        timeout_s_(options.timeout_s),
        memory_(options.memory),
        buckets_(MakeBuckets(piece_counts, options.bucket_bytes)),
        missing_(buckets_.size()),
        ready_(piece_counts.size()),
        bucket_of_(piece_counts.size()) {
    for (size_t b = 0; b < buckets_.size(); ++b) {
      std::fill(bucket_of_.begin() + static_cast<ptrdiff_t>(buckets_[b].first_piece),
                bucket_of_.begin() + static_cast<ptrdiff_t>(buckets_[b].end_piece), b);
    }
    StartRound();
    thread_ = Thread("gradients", [this] { Loop(); });
  }

  ~Impl() {
    {
      const std::lock_guard lock(mutex_);
      stopping_ = true;
    }
    changed_.notify_all();
  }

  void Ready(size_t piece) {
    const std::lock_guard lock(mutex_);
    Require(piece < ready_.size(), ErrorCode::kInvalidArgument,
            "piece {} is ready, but the buffer has only {}", piece, ready_.size());
    Require(!ready_[piece], ErrorCode::kInvalidArgument, "piece {} is ready twice in one round",
            piece);
    MarkReady(piece);
  }

  void Wait(Deadline deadline) {
    std::unique_lock lock(mutex_);
    for (size_t piece = 0; piece < ready_.size(); ++piece) {
      if (!ready_[piece]) MarkReady(piece);
    }
    const auto over = [&] { return reduced_ == buckets_.size() || error_ != nullptr; };
    // wait_until(max) overflows inside some standard libraries.
    if (deadline.at() == Deadline::Clock::time_point::max()) {
      changed_.wait(lock, over);
    } else {
      Require(changed_.wait_until(lock, deadline.at(), over), ErrorCode::kDeadlineExceeded,
              "only {} of {} gradient buckets were summed before the deadline", reduced_,
              buckets_.size());
    }
    if (error_ != nullptr) std::rethrow_exception(error_);
    StartRound();
  }

 private:
  void StartRound() {
    std::fill(ready_.begin(), ready_.end(), false);
    for (size_t b = 0; b < buckets_.size(); ++b) {
      missing_[b] = buckets_[b].end_piece - buckets_[b].first_piece;
    }
    reduced_ = 0;
  }

  void MarkReady(size_t piece) {
    ready_[piece] = true;
    if (--missing_[bucket_of_[piece]] == 0) changed_.notify_all();
  }

  bool NextIsReady() const { return reduced_ < buckets_.size() && missing_[reduced_] == 0; }

  void Loop() {
    std::unique_lock lock(mutex_);
    while (true) {
      changed_.wait(lock, [&] { return stopping_ || NextIsReady(); });
      if (stopping_) return;
      const Bucket& bucket = buckets_[reduced_];
      lock.unlock();
      const std::exception_ptr error = Reduce(bucket);
      lock.lock();
      error_ = error;
      ++reduced_;
      changed_.notify_all();
      // The group is broken: no later operation can succeed.
      if (error_ != nullptr) return;
    }
  }

  std::exception_ptr Reduce(const Bucket& bucket) noexcept {
    try {
      Request request = {.operation = Operation::kAllReduce,
                         .output = buffer_ + bucket.elements.begin,
                         .count = bucket.elements.size(),
                         .memory = memory_};
      request.name = fmt::format("gradients {} to {}", bucket.first_piece, bucket.end_piece - 1);
      group_.Run(request, Deadline::After(timeout_s_));
      return nullptr;
    } catch (...) {
      return std::current_exception();
    }
  }

  Group& group_;
  float* const buffer_;
  const double timeout_s_;
  const Memory memory_;
  const std::vector<Bucket> buckets_;

  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<size_t> missing_;  // by bucket: number of pieces that are not ready
  std::vector<bool> ready_;
  std::vector<size_t> bucket_of_;
  size_t reduced_ = 0;
  bool stopping_ = false;
  std::exception_ptr error_;

  Thread thread_;  // last: it uses everything above, and is joined first
};

BucketReducer::BucketReducer(Group& group, float* buffer, const std::vector<size_t>& piece_counts,
                             const BucketReducerOptions& options)
    : impl_(std::make_unique<Impl>(group, buffer, piece_counts, options)) {}

BucketReducer::~BucketReducer() = default;

void BucketReducer::Ready(size_t piece) { impl_->Ready(piece); }
void BucketReducer::Wait(Deadline deadline) { impl_->Wait(deadline); }

}  // namespace hearth::collective
