#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "hearth/base/deadline.h"
#include "hearth/collective/operation/call.h"
#include "hearth/collective/operation/data_type.h"

namespace hearth::collective {

// A typed range of memory that the Buffer does not own.
struct Buffer {
  std::byte* data = nullptr;
  size_t count = 0;
  DataType type = DataType::kFloat32;

  size_t bytes() const { return count * SizeOf(type); }
  Buffer Slice(Range range) const {
    return {data + range.begin * SizeOf(type), range.size(), type};
  }
};

// Reduction operator of an all-reduce, and the type that is sent between hosts.
struct Reduction {
  Reduction(Op how, Wire travels = Wire::kFloat32) : op(how), wire(travels) {}  // NOLINT
  Op op;
  Wire wire;
};

// Implementation of a group's operations; Group documents their semantics. Belongs to one rank and
// is used by one thread. Errors name the peer; the group adds the name of the failed operation.
class Backend {
 public:
  virtual ~Backend() = default;

  // Announces the next operation, which is compared with the peers' operations.
  virtual void Begin(const Call& call) = 0;

  // The operations; they wait and throw as Group::Run does.
  virtual void AllReduce(Buffer data, Reduction how, Deadline deadline) = 0;
  virtual void ReduceScatter(Buffer data, Op op, Deadline deadline) = 0;
  // Rank r contributes the elements of parts[r].
  virtual void AllGather(Buffer data, const std::vector<Range>& parts, Deadline deadline) = 0;
  // `input` has as many elements as `output` and does not overlap it.
  virtual void AllToAll(const std::byte* input, Buffer output, Deadline deadline) = 0;
  virtual void Broadcast(Buffer data, int root, Deadline deadline) = 0;
  virtual void Barrier(Deadline deadline) = 0;
  virtual void Send(Buffer data, int to, Deadline deadline) = 0;
  virtual void Receive(Buffer data, int from, Deadline deadline) = 0;

  // Name of a rank that has left, or empty. For callers that wait outside an operation; an
  // operation detects a departed rank itself.
  virtual std::string DepartedRank() = 0;

  // Ends this rank's operations, so that peers that wait for it fail at once.
  virtual void Leave() = 0;
};

}  // namespace hearth::collective
