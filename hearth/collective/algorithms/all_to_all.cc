#include <cstring>

#include "hearth/collective/algorithms/algorithms.h"

namespace hearth::collective {

void DirectAllToAll(const Exchange& exchange, const std::byte* input, Buffer output,
                    Deadline deadline) {
  const int world = exchange.transport.size();
  const int self = exchange.transport.self();
  const size_t bytes = output.bytes() / static_cast<size_t>(world);
  const auto at = [&](int rank) { return static_cast<size_t>(rank) * bytes; };
  exchange.plan.Clear();
  // At each step a rank receives from exactly one other rank.
  for (int distance = 1; distance < world; ++distance) {
    const int to = (self + distance) % world;
    const int from = (self - distance + world) % world;
    exchange.plan.sends.push_back({to, input + at(to), bytes});
    exchange.plan.receives.push_back({from, output.data + at(from), bytes});
  }
  exchange.transport.Run(exchange.plan, deadline);
  if (bytes > 0) std::memcpy(output.data + at(self), input + at(self), bytes);
}

}  // namespace hearth::collective
