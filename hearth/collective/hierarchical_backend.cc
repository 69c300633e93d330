#include "hearth/collective/hierarchical_backend.h"

#include <utility>

namespace hearth::collective {

HierarchicalBackend::HierarchicalBackend(Topology topology, int rank, Parts parts)
    : topology_(std::move(topology)),
      location_(topology_.Find(rank)),
      within_(std::move(parts.within)),
      across_(std::move(parts.across)),
      direct_(std::move(parts.direct)) {}

void HierarchicalBackend::Begin(const Call& call) {
  within_->Begin(call);
  if (across_ != nullptr) across_->Begin(call);
  direct_->Begin(call);
}

// With p parts of n elements: p ranks of a host sum n / p elements each, then p independent
// all-reduces of n / p elements run between the hosts, then each rank copies the parts of the
// others. So all ranks sum and send at once, and no two ranks of a host send the same element.
void HierarchicalBackend::AllReduce(Buffer data, Reduction how, Deadline deadline) {
  const int parts = topology_.parts();
  within_->InArena(data, [&](Buffer shared) {
    within_->ReduceParts(shared, how.op, parts, deadline);
    if (across_ != nullptr) {
      across_->AllReduce(shared.Slice(Part(shared.count, parts, location_.index)), how, deadline);
    }
    within_->GatherParts(shared, parts, deadline);
  });
}

// The parts above are one per rank of a host, but the caller wants one per rank of the world: it
// takes its part of the whole sum.
void HierarchicalBackend::ReduceScatter(Buffer data, Op op, Deadline deadline) {
  AllReduce(data, op, deadline);
}

void HierarchicalBackend::AllGather(Buffer data, const std::vector<Range>& parts,
                                    Deadline deadline) {
  for (size_t rank = 0; rank < parts.size(); ++rank) {
    if (parts[rank].size() > 0) {
      Broadcast(data.Slice(parts[rank]), static_cast<int>(rank), deadline);
    }
  }
}

void HierarchicalBackend::AllToAll(const std::byte* input, Buffer output, Deadline deadline) {
  Barrier(deadline);  // detects ranks that are in another operation instead of waiting for them
  direct_->AllToAll(input, output, deadline);
}

void HierarchicalBackend::Broadcast(Buffer data, int root, Deadline deadline) {
  const Topology::Location from = topology_.Find(root);
  const bool here = location_.host == from.host;
  if (here) within_->Broadcast(data, from.index, deadline);
  // Index 0 of the root's host has the data by now.
  if (location_.index == 0) across_->Broadcast(data, from.host, deadline);
  if (!here) within_->Broadcast(data, 0, deadline);
}

void HierarchicalBackend::Barrier(Deadline deadline) {
  within_->Barrier(deadline);
  // The second barrier within the host holds the others until index 0 returns from the other hosts.
  if (location_.index == 0) across_->Barrier(deadline);
  within_->Barrier(deadline);
}

void HierarchicalBackend::Send(Buffer data, int to, Deadline deadline) {
  direct_->Send(data, to, deadline);
}

void HierarchicalBackend::Receive(Buffer data, int from, Deadline deadline) {
  direct_->Receive(data, from, deadline);
}

std::string HierarchicalBackend::DepartedRank() {
  const std::string here = within_->DepartedRank();
  return here.empty() ? direct_->DepartedRank() : here;
}

void HierarchicalBackend::Leave() {
  direct_->Leave();
  within_->Leave();
  if (across_ != nullptr) across_->Leave();
}

}  // namespace hearth::collective
