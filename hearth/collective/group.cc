#include "hearth/collective/group.h"

#include <utility>

#include "hearth/collective/group_impl.h"

namespace hearth::collective {
namespace {

Buffer MakeBuffer(void* data, size_t count, DataType type) {
  return {static_cast<std::byte*>(data), count, type};
}

}  // namespace

uint64_t Group::Impl::PlaceOf(const void* buffer, uint64_t bytes) const {
  if (bytes == 0) return 0;
  const auto place = arena->Find(buffer, bytes);
  constexpr int kOffsetBits = 44;
  return place ? (uint64_t{place->block} + 1) << kOffsetBits | place->offset : 0;
}

void Group::Impl::Break(const Call& call, const Error& error) {
  // An abort's reason is the first failure's own sentence; what was running then does not matter.
  broken_ =
      error.code() == ErrorCode::kAborted ? error : Error(error.code(), call.Describe(), error);
  local->Leave();
  if (backend != nullptr) backend->Leave();
}

Group::Group(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Group::~Group() = default;

int Group::rank() const { return impl_->rank; }
int Group::world() const { return impl_->world; }
int Group::host_index() const { return impl_->local->self(); }

const std::string& Group::description() const { return impl_->description; }

void* Group::Allocate(size_t bytes) {
  std::byte* memory = nullptr;
  impl_->Run({.operation = Operation::kAllocate, .bytes = bytes}, nullptr,
             [&] { memory = impl_->arena->Allocate(bytes, Deadline::After(impl_->timeout_s)); });
  return memory;
}

void Group::AllReduce(void* buffer, size_t count, DataType type, Op op, Deadline deadline) {
  const Buffer data = MakeBuffer(buffer, count, type);
  impl_->Run({Operation::kAllReduce, type, op, 0, data.bytes()}, buffer,
             [&] { impl_->backend->AllReduce(data, op, deadline); });
}

void Group::ReduceScatter(void* buffer, size_t count, DataType type, Op op, Deadline deadline) {
  const Buffer data = MakeBuffer(buffer, count, type);
  impl_->Run({Operation::kReduceScatter, type, op, 0, data.bytes()}, buffer,
             [&] { impl_->backend->ReduceScatter(data, op, deadline); });
}

void Group::AllGather(void* buffer, size_t count, DataType type, Deadline deadline) {
  const Buffer data = MakeBuffer(buffer, count, type);
  impl_->Run({Operation::kAllGather, type, Op::kSum, 0, data.bytes()}, buffer,
             [&] { impl_->backend->AllGather(data, deadline); });
}

void Group::Broadcast(void* buffer, size_t bytes, int root, Deadline deadline) {
  Require(root >= 0 && root < impl_->world, ErrorCode::kInvalidArgument,
          "broadcast from rank {}: the group has ranks 0 to {}", root, impl_->world - 1);
  const Buffer data = MakeBuffer(buffer, bytes, DataType::kUint8);
  impl_->Run({Operation::kBroadcast, data.type, Op::kSum, root, bytes}, buffer,
             [&] { impl_->backend->Broadcast(data, root, deadline); });
}

void Group::Barrier(Deadline deadline) {
  impl_->Run({}, nullptr, [&] { impl_->backend->Barrier(deadline); });
}

void Group::Abort(const std::string& reason) { impl_->abort->Raise(reason); }

}  // namespace hearth::collective
