#include "hearth/collective/device/nccl_group.h"

#include <poll.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "hearth/base/error.h"

namespace hearth::collective {
namespace {

// NCCL provides no file descriptor for the state of its calls, so the state is polled with pauses
// of at most this length.
constexpr int kLongestPauseMs = 10;
// Interval at which a waiting rank checks its peers. The operation fails only if two checks in a
// row find that a peer has left, because data that the peer sent earlier may still arrive after the
// first check.
constexpr double kCheckSeconds = 0.1;
// Time limit for releasing a group's resources. The peers do not wait for the release.
constexpr double kEndSeconds = 2;

nccl::Type NcclTypeOf(DataType type) {
  switch (type) {
    case DataType::kFloat32:
      return nccl::kFloat32;
    case DataType::kFloat64:
      return nccl::kFloat64;
    case DataType::kInt32:
      return nccl::kInt32;
    case DataType::kInt64:
      return nccl::kInt64;
    case DataType::kFloat16:
      return nccl::kFloat16;
    case DataType::kBfloat16:
      return nccl::kBfloat16;
    case DataType::kUint8:
    case DataType::kBool:
      break;
  }
  return nccl::kUint8;
}

nccl::Reduction ReductionOf(const Request& request) {
  switch (request.op) {
    case Op::kSum:
      // logical or, because the bytes are 0 or 1
      return request.type == DataType::kBool ? nccl::kMax : nccl::kSum;
    case Op::kMin:
      return nccl::kMin;
    case Op::kMax:
      return nccl::kMax;
    case Op::kMean:
      break;
  }
  return nccl::kMean;
}

const void* InputOf(const Request& request) {
  return request.input != nullptr ? request.input : request.output;
}

std::byte* At(void* memory, size_t element, DataType type) {
  return static_cast<std::byte*>(memory) + element * SizeOf(type);
}
const std::byte* At(const void* memory, size_t element, DataType type) {
  return static_cast<const std::byte*>(memory) + element * SizeOf(type);
}

}  // namespace

NcclGroup::NcclGroup(int device, const nccl::UniqueId& id, Membership membership, Deadline deadline)
    : api_(nccl::Library().Get()), group_(std::move(membership)), stream_(device) {
  // The configuration is non-blocking: NCCL's calls return kInProgress instead of waiting for
  // peers, which may never arrive. This class waits instead, so that an abort or the deadline ends
  // the wait.
  const DeviceStream::Use use(stream_);
  nccl::Config config;
  try {
    Check(api_.init_rank(&communicator_, group_.world, id, group_.rank, &config));
    AwaitSubmission(deadline);
  } catch (...) {
    failed_ = true;
    End();
    throw;
  }
}

void NcclGroup::Run(const Request& request, const std::vector<Range>& parts, Deadline deadline) {
  const DeviceStream::Use use(stream_);
  try {
    // The program's stream may still be writing the input.
    stream_.WaitFor(static_cast<cuda::Stream*>(request.stream));
    Begin(request, parts);
    AwaitSubmission(deadline);
    // NCCL has added its kernels to the stream only now. A mark set earlier would precede them.
    stream_.Mark();
    Await(deadline);
  } catch (...) {
    failed_ = true;
    End();
    throw;
  }
}

void NcclGroup::Begin(const Request& request, const std::vector<Range>& parts) {
  const void* input = InputOf(request);
  const int type = NcclTypeOf(request.type);
  switch (request.operation) {
    case Operation::kAllReduce:
      return Check(api_.all_reduce(input, request.output, request.count, type, ReductionOf(request),
                                   communicator_, stream_.get()));
    case Operation::kReduceScatter:
      return ReduceScatter(request);
    case Operation::kAllGather:
      return AllGather(request, parts);
    case Operation::kAllToAll:
      return AllToAll(request);
    case Operation::kBroadcast:
      return Check(api_.broadcast(input, request.output, request.count, type, request.peer,
                                  communicator_, stream_.get()));
    case Operation::kSend:
      return Check(
          api_.send(input, request.count, type, request.peer, communicator_, stream_.get()));
    case Operation::kReceive:
      return Check(api_.receive(request.output, request.count, type, request.peer, communicator_,
                                stream_.get()));
    case Operation::kBarrier:
    case Operation::kAllocate:
      Throw(ErrorCode::kInternal, "NCCL does not support {}", CallOf(request).Describe());
  }
}

// Makes NCCL start several calls together. If they started one by one, two ranks could wait for
// each other.
template <typename Body>
void NcclGroup::Grouped(const Body& calls) {
  Check(api_.group_start());
  try {
    calls();
  } catch (...) {
    api_.group_end();  // otherwise NCCL would queue this thread's later calls for ever
    throw;
  }
  Check(api_.group_end());
}

// NCCL's reduce-scatter requires equal parts. Unequal parts are each reduced to their rank instead.
void NcclGroup::ReduceScatter(const Request& request) {
  const int type = NcclTypeOf(request.type);
  const nccl::Reduction op = ReductionOf(request);
  const void* input = InputOf(request);
  const bool in_place = input == request.output;
  const Range own = Part(request.count, group_.world, group_.rank);
  void* output = in_place ? At(request.output, own.begin, request.type) : request.output;
  if (request.count % static_cast<size_t>(group_.world) == 0) {
    return Check(
        api_.reduce_scatter(input, output, own.size(), type, op, communicator_, stream_.get()));
  }
  Grouped([&] {
    for (int rank = 0; rank < group_.world; ++rank) {
      const Range part = Part(request.count, group_.world, rank);
      if (part.size() == 0) continue;
      Check(api_.reduce(At(input, part.begin, request.type), output, part.size(), type, op, rank,
                        communicator_, stream_.get()));
    }
  });
}

void NcclGroup::AllGather(const Request& request, const std::vector<Range>& parts) {
  const int type = NcclTypeOf(request.type);
  const Range own = parts[static_cast<size_t>(group_.rank)];
  const bool in_place = InputOf(request) == request.output;
  const void* input = in_place ? At(request.output, own.begin, request.type) : request.input;
  const bool equal = std::all_of(parts.begin(), parts.end(),
                                 [&](const Range& part) { return part.size() == own.size(); });
  if (equal) {
    return Check(
        api_.all_gather(input, request.output, own.size(), type, communicator_, stream_.get()));
  }
  Grouped([&] {
    for (int rank = 0; rank < group_.world; ++rank) {
      const Range part = parts[static_cast<size_t>(rank)];
      if (part.size() == 0) continue;
      void* output = At(request.output, part.begin, request.type);
      Check(api_.broadcast(rank == group_.rank ? input : output, output, part.size(), type, rank,
                           communicator_, stream_.get()));
    }
  });
}

// NCCL has no all-to-all before 2.28, so this uses one send and one receive per rank, this rank
// included.
void NcclGroup::AllToAll(const Request& request) {
  const int type = NcclTypeOf(request.type);
  const size_t block = request.count / static_cast<size_t>(group_.world);
  Grouped([&] {
    for (int rank = 0; rank < group_.world; ++rank) {
      const size_t at = block * static_cast<size_t>(rank);
      Check(api_.send(At(request.input, at, request.type), block, type, rank, communicator_,
                      stream_.get()));
      Check(api_.receive(At(request.output, at, request.type), block, type, rank, communicator_,
                         stream_.get()));
    }
  });
}

// Waits until NCCL has accepted the last call. The first calls take longer because they connect the
// devices.
void NcclGroup::AwaitSubmission(Deadline deadline) {
  for (int pause_ms = 0;; pause_ms = std::min(pause_ms + 1, kLongestPauseMs)) {
    nccl::Result state = nccl::kSuccess;
    Check(api_.async_error(communicator_, &state));
    if (state != nccl::kInProgress) return Check(state);
    Require(!deadline.expired(), ErrorCode::kDeadlineExceeded,
            "NCCL had not connected the ranks' GPUs before the deadline");
    // The first try does not sleep, because a call on connected devices is accepted within
    // microseconds.
    pollfd polled = {group_.abort->fd(), POLLIN, 0};
    if (::poll(&polled, 1, pause_ms) < 0 && errno != EINTR) {
      ThrowErrno(errno, "cannot wait for NCCL");
    }
    group_.abort->ThrowIfRaised();
  }
}

void NcclGroup::Await(Deadline deadline) {
  bool left = false;
  Deadline look = Deadline::After(kCheckSeconds);
  while (!stream_.Done()) {
    pollfd polled[] = {{group_.abort->fd(), POLLIN, 0}, {stream_.fd(), POLLIN, 0}};
    const int wait_ms = Deadline::Earlier(look, deadline).poll_timeout_ms();
    const int ready = ::poll(polled, std::size(polled), wait_ms);
    if (ready < 0 && errno != EINTR) ThrowErrno(errno, "cannot wait for a GPU");
    group_.abort->ThrowIfRaised();
    Require(!deadline.expired() || stream_.Done(), ErrorCode::kDeadlineExceeded,
            "all ranks had arrived, but NCCL had not finished before the deadline");
    if (!look.expired()) continue;
    left = CheckPeers(left);
    look = Deadline::After(kCheckSeconds);
  }
}

// Returns true if a rank has left. Throws if the previous check found that too (`left_before`) and
// the operation is not done.
bool NcclGroup::CheckPeers(bool left_before) {
  nccl::Result state = nccl::kSuccess;
  Check(api_.async_error(communicator_, &state));
  Check(state);
  const std::string who = group_.departed_rank();
  Require(who.empty() || !left_before || stream_.Done(), ErrorCode::kUnavailable,
          "{} left the group", who);
  return !who.empty();
}

void NcclGroup::Check(nccl::Result result) const {
  if (result == nccl::kSuccess || result == nccl::kInProgress) return;
  const char* more = communicator_ == nullptr ? nullptr : api_.last_error(communicator_);
  Throw(ErrorCode::kUnavailable, "NCCL: {}{}{}", api_.error_string(result),
        more == nullptr || *more == 0 ? "" : ": ", more == nullptr ? "" : more);
}

void NcclGroup::Close() {
  if (communicator_ == nullptr) return;
  try {
    const DeviceStream::Use use(stream_);
    End();
  } catch (const Error&) {
    communicator_ = nullptr;  // the device cannot be made current, so nothing can be released
  }
}

// Calls NCCL's `finalize` first, because a peer may still read from this rank's memory although
// this rank has all its data. After a failure, aborts the running operations instead.
void NcclGroup::End() {
  nccl::Communicator* ending = std::exchange(communicator_, nullptr);
  if (ending == nullptr) return;
  if (!failed_) {
    nccl::Result state = api_.finalize(ending);
    for (const Deadline deadline = Deadline::After(kEndSeconds);
         state == nccl::kInProgress && !deadline.expired();) {
      ::poll(nullptr, 0, 1);
      if (api_.async_error(ending, &state) != nccl::kSuccess) break;
    }
    if (state == nccl::kSuccess && api_.destroy(ending) == nccl::kSuccess) return;
  }
  api_.abort(ending);
  // The running kernels have been aborted. Waits until they stop, because the caller may then reuse
  // their memory.
  try {
    stream_.Mark();
    for (const Deadline deadline = Deadline::After(kEndSeconds);
         !stream_.Done() && !deadline.expired();) {
      pollfd polled = {stream_.fd(), POLLIN, 0};
      ::poll(&polled, 1, deadline.poll_timeout_ms());
    }
  } catch (const Error&) {
    // A device that has failed runs no kernels, so there is nothing to wait for.
  }
}

}  // namespace hearth::collective
