// Carries out the operations by messages, choosing the algorithm by size: few steps for small
// buffers, few bytes for large ones.
#pragma once

#include <memory>
#include <vector>

#include "hearth/collective/algorithms.h"
#include "hearth/collective/backend.h"
#include "hearth/collective/transport.h"

namespace hearth::collective {

class MessageBackend : public Backend {
 public:
  explicit MessageBackend(std::unique_ptr<Transport> transport);

  void AllReduce(Buffer data, Op op, Deadline deadline) override;
  void ReduceScatter(Buffer data, Op op, Deadline deadline) override;
  void AllGather(Buffer data, Deadline deadline) override;
  void Broadcast(Buffer data, int root, Deadline deadline) override;
  void Barrier(Deadline deadline) override;
  void Leave() override;

 private:
  std::unique_ptr<Transport> transport_;
  Plan plan_;
  std::vector<std::byte> scratch_;
  Exchange exchange_;
};

}  // namespace hearth::collective
