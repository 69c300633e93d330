#pragma once

#include <memory>
#include <vector>

#include "hearth/collective/algorithms/algorithms.h"
#include "hearth/collective/operation/backend.h"
#include "hearth/collective/transport/transport.h"

namespace hearth::collective {

// Backend that exchanges messages. Chooses the algorithm by size: few steps for small buffers, few
// bytes for large ones.
class MessageBackend : public Backend {
 public:
  // `one_host` is true if all ranks are on one host and exchange messages through that host's
  // kernel. The value is the same on all ranks.
  MessageBackend(std::unique_ptr<Transport> transport, bool one_host);

  void Begin(const Call& call) override { call_ = call; }
  void AllReduce(Buffer data, Reduction how, Deadline deadline) override;
  void ReduceScatter(Buffer data, Op op, Deadline deadline) override;
  void AllGather(Buffer data, const std::vector<Range>& parts, Deadline deadline) override;
  void AllToAll(const std::byte* input, Buffer output, Deadline deadline) override;
  void Broadcast(Buffer data, int root, Deadline deadline) override;
  void Barrier(Deadline deadline) override;
  void Send(Buffer data, int to, Deadline deadline) override;
  void Receive(Buffer data, int from, Deadline deadline) override;
  std::string DepartedRank() override;
  void Leave() override;

 private:
  std::unique_ptr<Transport> transport_;
  const bool one_host_;
  Call call_;
  Plan plan_;
  std::vector<std::byte> scratch_;
  Exchange exchange_;
};

}  // namespace hearth::collective
