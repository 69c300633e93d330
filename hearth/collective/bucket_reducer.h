// Sums gradients over all ranks while the backward pass still runs. The parameters of one flat
// buffer are grouped into buckets from the back, because the backward pass finishes the last layers
// first; a background thread all-reduces each bucket, in the same order on all ranks.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <exception>
#include <mutex>
#include <vector>

#include "hearth/base/deadline.h"
#include "hearth/base/thread.h"
#include "hearth/collective/operation/call.h"
#include "hearth/collective/operation/data_type.h"

namespace hearth::collective {

class Group;

// Options of BucketReducer.
struct BucketReducerOptions {
  size_t bucket_bytes = 4 << 20;  // a larger piece gets a bucket to itself
  double timeout_s = 30;          // timeout of the all-reduce of one bucket
  Memory memory = Memory::kHost;  // where `buffer` is; kDevice: written on the default streams
};

// A bucket: its pieces and its elements of the buffer. MakeBuckets returns the buckets in launch
// order: the last pieces of the buffer come first.
struct Bucket {
  size_t first_piece = 0;
  size_t end_piece = 0;
  Range elements;
};
std::vector<Bucket> MakeBuckets(const std::vector<size_t>& piece_counts, size_t bucket_bytes);

// Sums the buckets of one buffer over all ranks, round after round. Used by one thread. The reducer
// uses the group from the first Ready to the end of Wait; between rounds, the group is free for
// other operations.
class BucketReducer {
 public:
  // `buffer` holds the pieces one after another, in memory from group.Allocate or in device memory.
  // Both `buffer` and `group` outlive the reducer.
  BucketReducer(Group& group, float* buffer, const std::vector<size_t>& piece_counts,
                const BucketReducerOptions& options = {});
  BucketReducer(const BucketReducer&) = delete;
  BucketReducer& operator=(const BucketReducer&) = delete;
  // Waits for the running all-reduce, at most `timeout_s`; Group::Abort ends it at once.
  ~BucketReducer();

  // Reports that the gradient of `piece` is final for this round. Called once per piece and round,
  // in any order.
  void Ready(size_t piece);
  // Counts the remaining pieces as ready, waits until all buckets are reduced and starts the next
  // round. Throws the error of a failed all-reduce (Group::Run), at every later call too; throws
  // kDeadlineExceeded if the deadline passes first, but the round then continues.
  void Wait(Deadline deadline);

 private:
  void StartRound();
  void MarkReady(size_t piece);
  void Loop();
  std::exception_ptr Reduce(const Bucket& bucket) noexcept;

  Group& group_;
  float* const buffer_;
  const double timeout_s_;
  const Memory memory_;
  const std::vector<Bucket> buckets_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<size_t> missing_;  // for each bucket, the number of pieces that are not ready
  std::vector<bool> ready_;
  std::vector<size_t> bucket_of_;
  size_t reduced_ = 0;
  bool stopping_ = false;
  std::exception_ptr error_;
  Thread thread_;  // last, so that it is joined before the members that it uses are destroyed
};

}  // namespace hearth::collective
