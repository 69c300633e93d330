#include "hearth/collective/bucket_reducer.h"

#include <fmt/format.h>

#include <algorithm>

#include "hearth/base/error.h"
#include "hearth/collective/group.h"

namespace hearth::collective {

// Fills buckets greedily, from the last piece to the first. The buckets depend only on the sizes,
// so all ranks get the same buckets without communication.
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

BucketReducer::BucketReducer(Group& group, float* buffer, const std::vector<size_t>& piece_counts,
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

BucketReducer::~BucketReducer() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  changed_.notify_all();
}

void BucketReducer::Ready(size_t piece) {
  const std::lock_guard lock(mutex_);
  Require(piece < ready_.size(), ErrorCode::kInvalidArgument,
          "gradient {} was reported ready, but the buffer has only {} gradients", piece,
          ready_.size());
  Require(!ready_[piece], ErrorCode::kInvalidArgument,
          "gradient {} was reported ready twice in one round", piece);
  MarkReady(piece);
}

void BucketReducer::Wait(Deadline deadline) {
  std::unique_lock lock(mutex_);
  for (size_t piece = 0; piece < ready_.size(); ++piece) {
    if (!ready_[piece]) MarkReady(piece);
  }
  const auto over = [&] { return reduced_ == buckets_.size() || error_ != nullptr; };
  Require(deadline.Wait(changed_, lock, over), ErrorCode::kDeadlineExceeded,
          "only {} of {} gradient buckets were summed before the deadline", reduced_,
          buckets_.size());
  // error_ is not cleared, so that every later call fails as well, and no new round starts.
  if (error_ != nullptr) std::rethrow_exception(error_);
  StartRound();
}

void BucketReducer::StartRound() {
  std::fill(ready_.begin(), ready_.end(), false);
  for (size_t b = 0; b < buckets_.size(); ++b) {
    missing_[b] = buckets_[b].end_piece - buckets_[b].first_piece;
  }
  reduced_ = 0;
}

void BucketReducer::MarkReady(size_t piece) {
  ready_[piece] = true;
  if (--missing_[bucket_of_[piece]] == 0) changed_.notify_all();
}

void BucketReducer::Loop() {
  // The buckets are reduced in launch order, even if a later one is complete first, because all
  // ranks must call the same operations in the same order.
  const auto next_is_ready = [this] {
    return reduced_ < buckets_.size() && missing_[reduced_] == 0;
  };
  std::unique_lock lock(mutex_);
  while (true) {
    changed_.wait(lock, [&] { return stopping_ || next_is_ready(); });
    if (stopping_) return;
    const Bucket& bucket = buckets_[reduced_];
    // Unlocks the mutex, because the backward pass calls Ready, which must not wait for the
    // network.
    lock.unlock();
    const std::exception_ptr error = Reduce(bucket);
    lock.lock();
    error_ = error;
    ++reduced_;
    changed_.notify_all();
    // The group is broken, so no later operation can succeed.
    if (error_ != nullptr) return;
  }
}

std::exception_ptr BucketReducer::Reduce(const Bucket& bucket) noexcept {
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

}  // namespace hearth::collective
