// Sums gradients over all ranks while backward still runs. The pieces (parameters) of one flat
// buffer are grouped into buckets from the back, because backward finishes the last layers first;
// a thread of its own all-reduces each bucket, on all ranks in the same order.
#pragma once

#include <cstddef>
#include <memory>
#include <vector>

#include "hearth/base/deadline.h"
#include "hearth/collective/call.h"
#include "hearth/collective/data_type.h"

namespace hearth::collective {

class Group;

struct BucketReducerOptions {
  size_t bucket_bytes = 4 << 20;  // a piece larger than this is a bucket of its own
  double timeout_s = 30;          // for the all-reduce of one bucket
  Memory memory = Memory::kHost;  // where the buffer is; kDevice: it is written by default streams
};

// Where buckets lie, in the order of their launch: the last pieces of the buffer come first.
struct Bucket {
  size_t first_piece = 0;
  size_t end_piece = 0;
  Range elements;
};
std::vector<Bucket> MakeBuckets(const std::vector<size_t>& piece_counts, size_t bucket_bytes);

// One thread drives it. It uses the group between the first Ready and the end of Wait; the group is
// free for other operations in the rest of the time.
class BucketReducer {
 public:
  // `buffer` holds the pieces one after the other; it comes from group.Allocate or is a device's
  // and, like `group`, outlives the reducer.
  BucketReducer(Group& group, float* buffer, const std::vector<size_t>& piece_counts,
                const BucketReducerOptions& options = {});
  BucketReducer(const BucketReducer&) = delete;
  BucketReducer& operator=(const BucketReducer&) = delete;
  // Call Group::Abort first if a bucket may be stuck; else this waits until its deadline.
  ~BucketReducer();

  // The gradient of `piece` is final for this round. Any order; once per round.
  void Ready(size_t piece);
  // Counts the remaining pieces as ready, waits until all buckets are reduced, starts the next
  // round. Throws what an all-reduce threw, at every later call too.
  void Wait(Deadline deadline);

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace hearth::collective
