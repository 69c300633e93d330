#include <algorithm>

#include "hearth/collective/algorithms/algorithms.h"

namespace hearth::collective {

void RecursiveDoublingAllReduce(const Exchange& exchange, Buffer data, Op op, Deadline deadline) {
  const size_t bytes = data.bytes();
  exchange.scratch.resize(std::max(exchange.scratch.size(), bytes));
  std::byte* const received = exchange.scratch.data();
  const int self = exchange.transport.self();
  // Before the step of bit b, the b ranks whose numbers agree in bit b and all higher bits have the
  // same sum; after it, 2 b ranks have the same sum.
  for (int bit = 1; bit < exchange.transport.size(); bit *= 2) {
    const int peer = self ^ bit;
    Plan& plan = exchange.plan;
    plan.Clear();
    plan.sends.push_back({peer, data.data, bytes});
    plan.receives.push_back({peer, received, bytes});
    exchange.transport.Run(plan, deadline);
    // Both ranks add the higher rank's sum to the lower rank's, so that they get the same bits.
    if (self < peer) {
      Combine({data.type, op}, data.data, received, data.count);
    } else {
      Combine({data.type, op}, received, data.data, data.count);
      std::copy_n(received, bytes, data.data);
    }
  }
}

}  // namespace hearth::collective
