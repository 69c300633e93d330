#include <algorithm>

#include "hearth/collective/algorithms/algorithms.h"

namespace hearth::collective {

void RecursiveDoublingAllReduce(const Exchange& exchange, Buffer data, Op op, Deadline deadline) {
  const size_t bytes = data.bytes();
  exchange.scratch.resize(std::max(exchange.scratch.size(), bytes));
  std::byte* const received = exchange.scratch.data();
  const int self = exchange.transport.self();
  // Before the step of bit b, the b ranks whose numbers agree from that bit on have the same sum;
  // afterwards 2 b ranks do.
  for (int bit = 1; bit < exchange.transport.size(); bit *= 2) {
    const int peer = self ^ bit;
    Plan& plan = exchange.plan;
    plan.Clear();
    plan.sends.push_back({peer, data.data, bytes});
    plan.receives.push_back({peer, received, bytes});
    exchange.transport.Run(plan, deadline);
    // On both ranks, the lower one's sum comes first.
    if (self < peer) {
      Combine({data.type, op}, data.data, received, data.count);
    } else {
      Combine({data.type, op}, received, data.data, data.count);
      std::copy_n(received, bytes, data.data);
    }
  }
}

}  // namespace hearth::collective
