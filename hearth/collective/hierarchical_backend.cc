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

// The n elements are divided into p parts. On each host, p ranks first sum n / p elements each,
// then p independent all-reduces of n / p elements run between the hosts, then each rank copies the
// other parts. So the p ranks of a host sum and send at the same time, and no two of them send the
// same element.
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

// Runs a whole all-reduce, because AllReduce divides the data among the ranks of a host, but
// ReduceScatter must divide it among all ranks. The caller reads its part of the sum.
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
  // Detects ranks that are in a different operation; direct_ would wait for them.
  Barrier(deadline);
  direct_->AllToAll(input, output, deadline);
}

void HierarchicalBackend::Broadcast(Buffer data, int root, Deadline deadline) {
  const Topology::Location from = topology_.Find(root);
  const bool here = location_.host == from.host;
  if (here) within_->Broadcast(data, from.index, deadline);
  // By now, the rank with index 0 on the root's host has the data.
  if (location_.index == 0) across_->Broadcast(data, from.host, deadline);
  if (!here) within_->Broadcast(data, 0, deadline);
}

void HierarchicalBackend::Barrier(Deadline deadline) {
  within_->Barrier(deadline);
  // The second barrier within the host blocks the other ranks until the barrier across hosts
  // returns.
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
