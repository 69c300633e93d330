#pragma once

#include <memory>
#include <vector>

#include "hearth/collective/algorithms/message_backend.h"
#include "hearth/collective/operation/backend.h"
#include "hearth/collective/shared_memory/shared_backend.h"
#include "hearth/collective/topology.h"

namespace hearth::collective {

// Backend for several hosts of which at least one has more than one rank. Sums within each host in
// shared memory, then between hosts by messages. The first ranks of each host each handle one part
// of the buffer.
class HierarchicalBackend : public Backend {
 public:
  // `within` connects the ranks of this host. `across` connects the ranks with the same index on
  // their hosts, numbered by host; it is null if this rank handles no part of the buffer. `direct`
  // connects all ranks.
  struct Parts {
    std::unique_ptr<SharedBackend> within;
    std::unique_ptr<MessageBackend> across;
    std::unique_ptr<MessageBackend> direct;
  };
  HierarchicalBackend(Topology topology, int rank, Parts parts);

  void Begin(const Call& call) override;
  void AllReduce(Buffer data, Reduction how, Deadline deadline) override;
  // Costs as much as AllReduce, because a rank's part may lie outside the range that the rank sums.
  void ReduceScatter(Buffer data, Op op, Deadline deadline) override;
  void AllGather(Buffer data, const std::vector<Range>& parts, Deadline deadline) override;
  // Sends messages directly between all ranks, within a host too.
  void AllToAll(const std::byte* input, Buffer output, Deadline deadline) override;
  void Broadcast(Buffer data, int root, Deadline deadline) override;
  void Barrier(Deadline deadline) override;
  void Send(Buffer data, int to, Deadline deadline) override;
  void Receive(Buffer data, int from, Deadline deadline) override;
  std::string DepartedRank() override;
  void Leave() override;

 private:
  const Topology topology_;
  const Topology::Location location_;
  const std::unique_ptr<SharedBackend> within_;
  const std::unique_ptr<MessageBackend> across_;
  const std::unique_ptr<MessageBackend> direct_;
};

}  // namespace hearth::collective
