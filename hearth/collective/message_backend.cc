#include "hearth/collective/message_backend.h"

#include <utility>

namespace hearth::collective {
namespace {

constexpr size_t kDirectBytes = 32 << 10;
constexpr size_t kHalvingBytes = 1 << 20;

}  // namespace

MessageBackend::MessageBackend(std::unique_ptr<Transport> transport)
    : transport_(std::move(transport)), exchange_{*transport_, plan_, scratch_} {}

void MessageBackend::AllReduce(Buffer data, Op op, Deadline deadline) {
  transport_->Begin({Operation::kAllReduce, data.type, op, 0, data.bytes()});
  if (data.bytes() <= kDirectBytes) return DirectAllReduce(exchange_, data, op, deadline);
  if (data.bytes() <= kHalvingBytes) return HalvingDoublingAllReduce(exchange_, data, op, deadline);
  RingAllReduce(exchange_, data, op, deadline);
}

void MessageBackend::ReduceScatter(Buffer data, Op op, Deadline deadline) {
  transport_->Begin({Operation::kReduceScatter, data.type, op, 0, data.bytes()});
  RingReduceScatter(exchange_, data, op, deadline);
}

void MessageBackend::AllGather(Buffer data, Deadline deadline) {
  transport_->Begin({Operation::kAllGather, data.type, Op::kSum, 0, data.bytes()});
  RingAllGather(exchange_, data, deadline);
}

void MessageBackend::Broadcast(Buffer data, int root, Deadline deadline) {
  transport_->Begin({Operation::kBroadcast, data.type, Op::kSum, root, data.bytes()});
  TreeBroadcast(exchange_, data, root, deadline);
}

void MessageBackend::Barrier(Deadline deadline) {
  transport_->Begin({});
  DisseminationBarrier(exchange_, deadline);
}

void MessageBackend::Leave() { transport_->Close(); }

}  // namespace hearth::collective
