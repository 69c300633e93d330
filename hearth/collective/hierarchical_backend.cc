#include "hearth/collective/hierarchical_backend.h"

#include <utility>

namespace hearth::collective {

HierarchicalBackend::HierarchicalBackend(Topology topology, int rank,
                                         std::unique_ptr<SharedBackend> within,
                                         std::unique_ptr<MessageBackend> across)
    : topology_(std::move(topology)),
      spot_(topology_.Find(rank)),
      within_(std::move(within)),
      across_(std::move(across)) {}

void HierarchicalBackend::AllReduce(Buffer data, Op op, Deadline deadline) {
  const int parts = topology_.parts();
  within_->InArena(data, [&](Buffer shared) {
    within_->ReduceParts(shared, op, parts, deadline);
    if (across_ != nullptr) {
      across_->AllReduce(shared.Slice(Part(shared.count, parts, spot_.index)), op, deadline);
    }
    within_->GatherParts(shared, parts, deadline);
  });
}

void HierarchicalBackend::ReduceScatter(Buffer data, Op op, Deadline deadline) {
  AllReduce(data, op, deadline);
}

void HierarchicalBackend::AllGather(Buffer data, Deadline deadline) {
  for (int rank = 0; rank < topology_.world(); ++rank) {
    Broadcast(data.Slice(Part(data.count, topology_.world(), rank)), rank, deadline);
  }
}

void HierarchicalBackend::Broadcast(Buffer data, int root, Deadline deadline) {
  const Topology::Spot from = topology_.Find(root);
  const bool here = spot_.host == from.host;
  if (here) within_->Broadcast(data, from.index, deadline);
  if (spot_.index == 0) across_->Broadcast(data, from.host, deadline);
  if (!here) within_->Broadcast(data, 0, deadline);
}

void HierarchicalBackend::Barrier(Deadline deadline) {
  within_->Barrier(deadline);
  if (spot_.index == 0) across_->Barrier(deadline);
  within_->Barrier(deadline);
}

void HierarchicalBackend::Leave() {
  within_->Leave();
  if (across_ != nullptr) across_->Leave();
}

}  // namespace hearth::collective
