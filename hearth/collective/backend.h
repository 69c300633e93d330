// One way to carry out the operations of a group: see Group for what they mean. Belongs to one
// rank; one thread uses it. Errors name the peer; the group adds which operation failed.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "hearth/base/deadline.h"
#include "hearth/collective/call.h"
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

// How an all-reduce combines.
struct Reduction {
  Reduction(Op how, Wire travels = Wire::kFloat32) : op(how), wire(travels) {}  // NOLINT
  Op op;
  Wire wire;
};

class Backend {
 public:
  virtual ~Backend() = default;

  // What the next operation is for: compared with what the peers do.
  virtual void Begin(const Call& call) = 0;

  virtual void AllReduce(Buffer data, Reduction how, Deadline deadline) = 0;
  virtual void ReduceScatter(Buffer data, Op op, Deadline deadline) = 0;
  // Rank r's elements are those of parts[r].
  virtual void AllGather(Buffer data, const std::vector<Range>& parts, Deadline deadline) = 0;
  // `input` has as many elements as `output` and does not overlap it.
  virtual void AllToAll(const std::byte* input, Buffer output, Deadline deadline) = 0;
  virtual void Broadcast(Buffer data, int root, Deadline deadline) = 0;
  virtual void Barrier(Deadline deadline) = 0;
  virtual void Send(Buffer data, int to, Deadline deadline) = 0;
  virtual void Receive(Buffer data, int from, Deadline deadline) = 0;

  // Names a rank that has left, or is empty. For waits elsewhere; operations notice it themselves.
  virtual std::string WhoLeft() = 0;

  // No further operations: lets the peers' waits for this rank end at once.
  virtual void Leave() = 0;
};

}  // namespace hearth::collective
