// One way to carry out the operations of a group: see Group for what they mean. Belongs to one
// rank; one thread uses it. Errors name the peer; the group adds which operation failed.
#pragma once

#include <cstddef>

#include "hearth/base/deadline.h"
#include "hearth/collective/data_type.h"

namespace hearth::collective {

struct Buffer {
  std::byte* data = nullptr;
  size_t count = 0;
  DataType type = DataType::kFloat32;

  size_t bytes() const { return count * SizeOf(type); }
  Buffer Slice(Range range) const {
    return {data + range.begin * SizeOf(type), range.size(), type};
  }
};

class Backend {
 public:
  virtual ~Backend() = default;

  virtual void AllReduce(Buffer data, Op op, Deadline deadline) = 0;
  virtual void ReduceScatter(Buffer data, Op op, Deadline deadline) = 0;
  virtual void AllGather(Buffer data, Deadline deadline) = 0;
  virtual void Broadcast(Buffer data, int root, Deadline deadline) = 0;
  virtual void Barrier(Deadline deadline) = 0;

  // No further operations: lets the peers' waits for this rank end at once.
  virtual void Leave() = 0;
};

}  // namespace hearth::collective
