#include "hearth/collective/algorithms/message_backend.h"

#include <algorithm>
#include <bit>
#include <utility>

namespace hearth::collective {
namespace {

// Limits of direct exchange: bytes that a rank sends, and number of ranks. Above them, the
// additional bytes or messages cost more than the saved steps.
constexpr size_t kDirectBytes = 32 << 10;
constexpr size_t kDirectRanks = 8;
// Limit of recursive doubling, which is used only within a host. There, messages cost processor
// time instead of latency, and recursive doubling sends the fewest messages (decision 065).
constexpr size_t kDoublingBytes = 64 << 10;
// Above kHalvingBytes the ring is faster: its chunks keep the network busy while they are summed.
// It has 2 (world - 1) steps, which pay off only for parts above kHalvingPart bytes.
constexpr size_t kHalvingBytes = 1 << 20;
constexpr size_t kHalvingPart = 32 << 10;

}  // namespace

MessageBackend::MessageBackend(std::unique_ptr<Transport> transport, bool one_host)
    : transport_(std::move(transport)),
      one_host_(one_host),
      exchange_{*transport_, plan_, scratch_} {}

void MessageBackend::AllReduce(Buffer data, Reduction how, Deadline deadline) {
  transport_->Begin(call_);
  if (how.wire != Wire::kFloat32) return NarrowAllReduce(exchange_, data, how.wire, deadline);
  const auto world = static_cast<size_t>(transport_->size());
  if (one_host_ && world > 2 && std::has_single_bit(world) && data.bytes() <= kDoublingBytes) {
    return RecursiveDoublingAllReduce(exchange_, data, how.op, deadline);
  }
  if (world <= kDirectRanks && data.bytes() * (world - 1) <= kDirectBytes) {
    return DirectAllReduce(exchange_, data, how.op, deadline);
  }
  if (data.bytes() <= std::max(kHalvingBytes, world * kHalvingPart)) {
    return HalvingDoublingAllReduce(exchange_, data, how.op, deadline);
  }
  RingAllReduce(exchange_, data, how.op, deadline);
}

void MessageBackend::ReduceScatter(Buffer data, Op op, Deadline deadline) {
  transport_->Begin(call_);
  RingReduceScatter(exchange_, data, op, deadline);
}

void MessageBackend::AllGather(Buffer data, const std::vector<Range>& parts, Deadline deadline) {
  transport_->Begin(call_);
  RingAllGather(exchange_, data, parts, deadline);
}

void MessageBackend::AllToAll(const std::byte* input, Buffer output, Deadline deadline) {
  transport_->Begin(call_);
  DirectAllToAll(exchange_, input, output, deadline);
}

void MessageBackend::Broadcast(Buffer data, int root, Deadline deadline) {
  transport_->Begin(call_);
  TreeBroadcast(exchange_, data, root, deadline);
}

void MessageBackend::Barrier(Deadline deadline) {
  transport_->Begin(call_);
  DisseminationBarrier(exchange_, deadline);
}

void MessageBackend::Send(Buffer data, int to, Deadline deadline) {
  transport_->BeginPair(call_, to);
  plan_.Clear();
  plan_.sends.push_back({to, data.data, data.bytes()});
  transport_->Run(plan_, deadline);
}

void MessageBackend::Receive(Buffer data, int from, Deadline deadline) {
  transport_->BeginPair(call_, from);
  plan_.Clear();
  plan_.receives.push_back({from, data.data, data.bytes()});
  transport_->Run(plan_, deadline);
}

std::string MessageBackend::DepartedRank() { return transport_->DepartedRank(); }

void MessageBackend::Leave() { transport_->Close(); }

}  // namespace hearth::collective
