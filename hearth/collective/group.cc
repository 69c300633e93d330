#include "hearth/collective/group.h"

#include <utility>

#include "hearth/collective/group_impl.h"

namespace hearth::collective {

uint64_t Group::Impl::LocationOf(const void* buffer, uint64_t bytes) const {
  if (bytes == 0) return 0;
  const auto location = arena->Find(buffer, bytes);
  // The location has the block's number, starting at 1, in the bits above a 44-bit offset (16 TiB).
  // Two ranks get the same location exactly if they pass corresponding memory. The value 0 denotes
  // memory outside the arena.
  constexpr int kOffsetBits = 44;
  return location ? (uint64_t{location->block} + 1) << kOffsetBits | location->offset : 0;
}

void Group::Impl::Break(const Call& call, const Error& error) {
  // The reason of an abort is the message of the first failure, so the running operation is not
  // added.
  broken_ =
      error.code() == ErrorCode::kAborted ? error : Error(error.code(), call.Describe(), error);
  // The rank that this one waited for may itself have waited for another rank, so the error names
  // the ranks that have not arrived.
  const bool late = error.code() == ErrorCode::kDeadlineExceeded && stalls != nullptr;
  if (const std::string absent = late ? stalls->MissingRanks() : ""; !absent.empty()) {
    StallWatch::CountTimeout();
    broken_ = Error(error.code(), fmt::format("{}: {} had not arrived before the deadline; {}",
                                              call.Describe(), absent, kStepsAdvice));
  }
  // End must follow MissingRanks(), which knows only the running operation.
  if (stalls != nullptr) stalls->End(false);
  if (timeline::On()) RecordOperation(call, &*broken_);
  // Fail() keeps NCCL from waiting for the peers when it closes, because the ranks are now out of
  // step. Leave() comes last because it makes the peers fail, and this rank's error must be
  // complete by then.
  if (devices != nullptr) devices->Fail();
  local->Leave();
  if (backend != nullptr) backend->Leave();
}

void Group::Impl::RecordOperation(const Call& call, const Error* error) {
  const bool pair = IsPair(call.operation);
  if (!pair) ++steps_;
  timeline::Details details;
  details.Add("bytes", static_cast<int64_t>(call.bytes)).Add("type", NameOf(call.type));
  details.Add("transport", call.memory == Memory::kDevice ? "nccl" : description);
  details.Add("group", name);
  if (pair) {
    details.Add("peer", int64_t{call.root});
  } else {
    details.Add("step", static_cast<int64_t>(steps_));
  }
  if (submitted_ != timeline::Clock::time_point()) {
    const std::chrono::duration<double, std::micro> waited = begun_ - submitted_;
    details.Add("queue_us", static_cast<int64_t>(waited.count()));
  }
  if (error != nullptr) details.Add("error", error->message());
  timeline::Add({"collective", call.Title(), begun_, timeline::Clock::now()}, details);
  // Resets submitted_, because the next operation might not come from a queue.
  submitted_ = {};
}

Group::Group(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Group::~Group() = default;

bool Group::broken() const { return impl_->broken(); }
int Group::rank() const { return impl_->rank; }
int Group::world() const { return impl_->world; }
int Group::host_index() const { return impl_->local->self(); }

const std::string& Group::description() const { return impl_->description; }

void* Group::Allocate(size_t bytes) {
  std::byte* memory = nullptr;
  const Deadline deadline = Deadline::After(impl_->identity.options.timeout_s);
  impl_->Run({.operation = Operation::kAllocate, .bytes = bytes}, nullptr, deadline,
             [&] { memory = impl_->arena->Allocate(bytes, deadline); });
  return memory;
}

void Group::Run(const Request& request, Deadline deadline) { impl_->Execute(request, deadline); }
void Group::Check(const Request& request) const { impl_->Check(request); }

void Group::AllReduce(void* buffer, size_t count, DataType type, Op op, Deadline deadline) {
  Run({Operation::kAllReduce, /*input=*/nullptr, buffer, count, type, op}, deadline);
}

void Group::AllGather(void* buffer, size_t count, DataType type, Deadline deadline) {
  Run({Operation::kAllGather, /*input=*/nullptr, buffer, count, type}, deadline);
}

void Group::Broadcast(void* buffer, size_t bytes, int root, Deadline deadline) {
  Request request = {Operation::kBroadcast, /*input=*/nullptr, buffer, bytes, DataType::kUint8};
  request.peer = root;
  Run(request, deadline);
}

void Group::Barrier(Deadline deadline) { Run({}, deadline); }

void Group::Abort(const std::string& reason) { impl_->abort->Raise(reason); }

}  // namespace hearth::collective
