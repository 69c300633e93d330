// Executes a request of a group: validation, copies and means around the backend's operation.
#include <cstring>
#include <numeric>

#include "hearth/collective/group_impl.h"
#include "hearth/collective/operation/combine.h"

namespace hearth::collective {
namespace {

bool IsInPlace(const Request& request) {
  return request.input == nullptr || request.input == request.output;
}

void Copy(std::byte* to, const void* from, size_t bytes) {
  if (bytes > 0 && to != from) std::memcpy(to, from, bytes);
}

}  // namespace

void Group::Impl::Execute(const Request& request, Deadline deadline) {
  if (broken_.has_value()) throw Error(*broken_);
  Check(request);
  const Call call = CallOf(request);
  submitted_ = request.submitted;
  if (call.memory == Memory::kDevice) return ExecuteOnDevice(call, request, deadline);
  Buffer work;
  // Prepare is guarded because it may fail to allocate scratch memory. The peers enter the
  // operation meanwhile and would wait for this rank. Check() is not guarded, because its errors
  // leave the group usable.
  Guard(call, [&] { work = Prepare(request); });
  // A backend reads the peers' buffers at this rank's offset in the arena, so all ranks must pass
  // the same offset. Messages between two ranks are copied through a mailbox instead.
  const void* compared = IsPair(call.operation) ? nullptr : work.data;
  Run(call, compared, deadline, [&] {
    // Without data, a barrier still checks that all ranks are in the same operation.
    if (call.bytes == 0 && !IsPair(call.operation)) return backend->Barrier(deadline);
    Dispatch(request, work, deadline);
  });
}

// The ranks first synchronise through the backend, because NCCL neither compares calls nor names
// ranks in errors.
void Group::Impl::ExecuteOnDevice(const Call& call, const Request& request, Deadline deadline) {
  Run(call, nullptr, deadline, [&] {
    const Buffer nothing = {.type = request.type};
    if (call.operation == Operation::kSend) {
      backend->Send(nothing, request.peer, deadline);
    } else if (call.operation == Operation::kReceive) {
      backend->Receive(nothing, request.peer, deadline);
    } else {
      backend->Barrier(deadline);
    }
    if (call.bytes > 0) devices->Run(request, PartsOf(request), deadline);
  });
}

void Group::Impl::CheckOnDevice(const Request& request) const {
  const auto refuse = [&](const char* reason) {
    Throw(ErrorCode::kInvalidArgument, "{}: {}", CallOf(request).Describe(), reason);
  };
  if (devices == nullptr) refuse("the group has not opened the ranks' GPUs (Group::OpenDevice)");
  if (request.wire != Wire::kFloat32) refuse("data in GPU memory is sent without conversion");
  if (request.operation == Operation::kAllToAll && IsInPlace(request)) {
    refuse("in GPU memory the input must be separate from the output");
  }
}

void Group::Impl::Check(const Request& request) const {
  constexpr auto kInvalid = ErrorCode::kInvalidArgument;
  const auto operation = request.operation;
  if (IsPair(operation) || operation == Operation::kBroadcast) {
    Require(request.peer >= 0 && request.peer < world, kInvalid,
            "{} with rank {}: the group has ranks 0 to {}", CallOf(request).Describe(),
            request.peer, world - 1);
    Require(!IsPair(operation) || request.peer != rank, kInvalid,
            "rank {} cannot exchange messages with itself; copy the data", rank);
  }
  if (operation == Operation::kAllToAll) {
    Require(request.count % static_cast<size_t>(world) == 0, kInvalid,
            "an all-to-all of {} elements cannot be divided into {} equal blocks", request.count,
            world);
  }
  if (operation == Operation::kAllGather && !request.counts.empty()) {
    const size_t all = std::accumulate(request.counts.begin(), request.counts.end(), size_t{0});
    Require(request.counts.size() == static_cast<size_t>(world) && all == request.count, kInvalid,
            "an all-gather of {} elements cannot have {} parts with {} elements in total in a "
            "group of {} ranks",
            request.count, request.counts.size(), all, world);
  }
  if (request.memory == Memory::kDevice && operation != Operation::kBarrier) CheckOnDevice(request);
  if (!Reduces(operation)) return;
  Require(request.op != Op::kMean || request.type != DataType::kBool, kInvalid,
          "bools have no mean; reduce them by sum (or), max (or) or min (and)");
  const bool adds = request.op == Op::kSum || request.op == Op::kMean;
  Require(request.wire == Wire::kFloat32 ||
              (operation == Operation::kAllReduce && adds && request.type == DataType::kFloat32),
          kInvalid, "{}: only sums and means of float32 in an all-reduce can be sent in 16 bits",
          CallOf(request).Describe());
}

Buffer Group::Impl::Prepare(const Request& request) {
  auto* output = static_cast<std::byte*>(request.output);
  Buffer work = {output, request.count, request.type};
  if (request.operation == Operation::kSend) {
    if (request.input != nullptr) {
      // Neither sendmsg nor the other transports modify the buffer.
      work.data = const_cast<std::byte*>(static_cast<const std::byte*>(request.input));
    }
    return work;
  }
  if (IsInPlace(request)) return work;
  switch (request.operation) {
    case Operation::kAllReduce:
      Copy(output, request.input, work.bytes());
      break;
    case Operation::kReduceScatter:
      // Backends reduce in place over the whole buffer, but the output has room only for this
      // rank's part.
      if (scratch_.size() < work.bytes()) scratch_.resize(work.bytes());
      work.data = scratch_.data();
      Copy(work.data, request.input, work.bytes());
      break;
    case Operation::kAllGather: {
      const Buffer own = work.Slice(PartsOf(request)[static_cast<size_t>(rank)]);
      Copy(own.data, request.input, own.bytes());
      break;
    }
    case Operation::kBroadcast:
      if (rank == request.peer) Copy(output, request.input, work.bytes());
      break;
    default:
      break;
  }
  return work;
}

void Group::Impl::Dispatch(const Request& request, Buffer work, Deadline deadline) {
  switch (request.operation) {
    case Operation::kAllReduce:
    case Operation::kReduceScatter:
      return Reduce(request, work, deadline);
    case Operation::kAllGather:
      return backend->AllGather(work, PartsOf(request), deadline);
    case Operation::kAllToAll: {
      if (!IsInPlace(request)) {
        return backend->AllToAll(static_cast<const std::byte*>(request.input), work, deadline);
      }
      // In place, received blocks would overwrite blocks that are still to be sent.
      const auto* from = work.data;
      scratch_.assign(from, from + work.bytes());
      return backend->AllToAll(scratch_.data(), work, deadline);
    }
    case Operation::kBroadcast:
      return backend->Broadcast(work, request.peer, deadline);
    case Operation::kBarrier:
      return backend->Barrier(deadline);
    case Operation::kSend:
      return backend->Send(work, request.peer, deadline);
    case Operation::kReceive:
      return backend->Receive(work, request.peer, deadline);
    case Operation::kAllocate:
      Throw(ErrorCode::kInternal, "an allocation is not a request: call Group::Allocate");
  }
}

void Group::Impl::Reduce(const Request& request, Buffer work, Deadline deadline) {
  const bool mean = request.op == Op::kMean;
  // Divides before the sum if the sum could overflow to infinity although the mean is finite.
  const bool before =
      mean && (request.type == DataType::kFloat16 || request.wire == Wire::kFloat16);
  if (before) Divide(work.type, work.data, work.count, world);
  Buffer result = work;
  if (request.operation == Operation::kAllReduce) {
    backend->AllReduce(work, {request.op, request.wire}, deadline);
  } else {
    backend->ReduceScatter(work, request.op, deadline);
    result = work.Slice(Part(work.count, world, rank));
  }
  if (mean && !before) Divide(result.type, result.data, result.count, world);
  if (request.operation == Operation::kReduceScatter && !IsInPlace(request)) {
    Copy(static_cast<std::byte*>(request.output), result.data, result.bytes());
  }
}

// The result is valid until the next call, because the memory is reused so that operations do not
// allocate.
const std::vector<Range>& Group::Impl::PartsOf(const Request& request) {
  parts_.resize(static_cast<size_t>(world));
  size_t begin = 0;
  for (int i = 0; i < world; ++i) {
    Range& part = parts_[static_cast<size_t>(i)];
    part = Part(request.count, world, i);
    if (request.counts.empty()) continue;
    part = {begin, begin + request.counts[static_cast<size_t>(i)]};
    begin = part.end;
  }
  return parts_;
}

}  // namespace hearth::collective
