#include <algorithm>

#include "hearth/collective/algorithms/algorithms.h"

namespace hearth::collective {

void DirectAllReduce(const Exchange& exchange, Buffer data, Op op, Deadline deadline) {
  const int world = exchange.transport.size();
  const int self = exchange.transport.self();
  const size_t bytes = data.bytes();
  // One slot per rank, this one included, because the sum starts with rank 0's data on every rank.
  exchange.scratch.resize(std::max(exchange.scratch.size(), bytes * static_cast<size_t>(world)));
  const auto slot = [&](int rank) {
    return exchange.scratch.data() + static_cast<size_t>(rank) * bytes;
  };
  // Each rank begins with a different peer, so that at any time only one rank sends to a given
  // rank.
  exchange.plan.Clear();
  for (int distance = 1; distance < world; ++distance) {
    const int to = (self + distance) % world;
    const int from = (self - distance + world) % world;
    exchange.plan.sends.push_back({to, data.data, bytes});
    exchange.plan.receives.push_back({from, slot(from), bytes});
  }
  exchange.transport.Run(exchange.plan, deadline);
  if (self != 0) {
    std::copy_n(data.data, bytes, slot(self));
    std::copy_n(slot(0), bytes, data.data);  // unlike memcpy(), allows null with size 0
  }
  for (int rank = 1; rank < world; ++rank) {
    // On rank 0, `data` already contains the first summand.
    Combine({data.type, op}, data.data, slot(rank), data.count);
  }
}

}  // namespace hearth::collective
