#include <algorithm>

#include "hearth/collective/algorithms/algorithms.h"

namespace hearth::collective {
namespace {

// A rank forwards one chunk while the next one arrives, as in the ring.
constexpr size_t kTreeChunkBytes = 256 << 10;

}  // namespace

void TreeBroadcast(const Exchange& exchange, Buffer data, int root, Deadline deadline) {
  const int world = exchange.transport.size();
  const auto real = [&](int relative) { return (relative + root) % world; };
  // Ranks are renumbered so that the root is 0. The parent's number is the rank's number without
  // its lowest set bit. The children's numbers are the rank's number plus one bit below that bit.
  const int self = (exchange.transport.self() - root + world) % world;
  const int lowest = self == 0 ? world : self & -self;
  const size_t chunk = kTreeChunkBytes / SizeOf(data.type);
  Plan& plan = exchange.plan;
  plan.Clear();
  for (size_t at = 0; at < data.count; at += chunk) {
    const Buffer part = data.Slice({at, std::min(at + chunk, data.count)});
    if (self != 0) plan.receives.push_back({real(self - lowest), part.data, part.bytes()});
    const int after = static_cast<int>(plan.receives.size()) - 1;
    for (int bit = 1; bit < lowest && self + bit < world; bit *= 2) {
      plan.sends.push_back({real(self + bit), part.data, part.bytes(), after});
    }
  }
  exchange.transport.Run(plan, deadline);
}

void DisseminationBarrier(const Exchange& exchange, Deadline deadline) {
  const int world = exchange.transport.size();
  const int self = exchange.transport.self();
  // After the step at distance d, a rank knows that the 2 d - 1 ranks before it have arrived. The
  // value of the byte does not matter.
  std::byte token{1};
  std::byte ignored{};
  for (int distance = 1; distance < world; distance *= 2) {
    exchange.plan.Clear();
    exchange.plan.sends.push_back({(self + distance) % world, &token, 1});
    exchange.plan.receives.push_back({(self - distance + world) % world, &ignored, 1});
    exchange.transport.Run(exchange.plan, deadline);
  }
}

}  // namespace hearth::collective
