#include <algorithm>

#include "hearth/collective/algorithms/algorithms.h"

namespace hearth::collective {
namespace {

// A chunk is summed while it is in the second-level cache, and sent on once it is complete.
constexpr size_t kRingChunkBytes = 256 << 10;

// One half of a ring all-reduce: in each of `steps` steps a rank sends one part to the right and
// receives the previous part from the left.
struct Lap {
  int first_sent;  // the part sent in the first step
  bool combine;
};

class RingPlanner {
 public:
  // Without `parts` the data is divided equally.
  RingPlanner(const Exchange& exchange, Buffer data, const std::vector<Range>* parts = nullptr)
      : plan_(exchange.plan),
        data_(data),
        parts_(parts),
        world_(exchange.transport.size()),
        self_(exchange.transport.self()),
        chunk_(kRingChunkBytes / SizeOf(data.type)) {
    plan_.Clear();
    size_t longest = 0;
    for (int rank = 0; rank < world_; ++rank) longest = std::max(longest, PartOf(rank).size());
    // All parts have the same number of chunks, so that chunk k of a step depends on chunk k of the
    // step before.
    chunks_ = static_cast<int>((longest + chunk_ - 1) / chunk_);
  }

  // In step s, rank r sends part (first_sent - s) and receives the part before it; the left rank
  // sends exactly that part, because its part numbers are lower by one. With first_sent = r - 1,
  // rank r ends with the sum of part r, which the second lap and a reduce-scatter need.
  void Add(Lap lap) {
    for (int step = 0; step < world_ - 1; ++step) {
      const int sent = (lap.first_sent - step + 2 * world_) % world_;
      const int received = (sent - 1 + world_) % world_;
      for (int k = 0; k < chunks_; ++k) AddChunk(sent, received, k, lap.combine);
    }
  }

 private:
  void AddChunk(int sent, int received, int k, bool combine) {
    // Every step adds as many sends as receives, and empty chunks are not skipped, so message i of
    // both lists belongs to the same chunk number of the same step.
    const int index = static_cast<int>(plan_.sends.size());
    const Buffer out = Chunk(sent, k);
    const Buffer in = Chunk(received, k);
    // The data sent now was received in the previous step, `chunks_` messages before.
    plan_.sends.push_back(
        {(self_ + 1) % world_, out.data, out.bytes(), std::max(index - chunks_, -1)});
    plan_.receives.push_back({(self_ - 1 + world_) % world_, in.data, in.bytes(), combine});
  }

  Range PartOf(int rank) const {
    if (parts_ != nullptr) return (*parts_)[static_cast<size_t>(rank)];
    return Part(data_.count, world_, rank);
  }

  Buffer Chunk(int part, int k) const {
    const Range range = PartOf(part);
    const size_t begin = std::min(range.end, range.begin + static_cast<size_t>(k) * chunk_);
    return data_.Slice({begin, std::min(range.end, begin + chunk_)});
  }

  Plan& plan_;
  const Buffer data_;
  const std::vector<Range>* parts_;
  const int world_;
  const int self_;
  const size_t chunk_;
  int chunks_ = 0;
};

}  // namespace

void RingAllReduce(const Exchange& exchange, Buffer data, Op op, Deadline deadline) {
  RingPlanner planner(exchange, data);
  const int self = exchange.transport.self();
  planner.Add({.first_sent = self - 1, .combine = true});
  planner.Add({.first_sent = self, .combine = false});
  exchange.plan.arithmetic = {data.type, op};
  exchange.transport.Run(exchange.plan, deadline);
}

void RingReduceScatter(const Exchange& exchange, Buffer data, Op op, Deadline deadline) {
  RingPlanner planner(exchange, data);
  planner.Add({.first_sent = exchange.transport.self() - 1, .combine = true});
  exchange.plan.arithmetic = {data.type, op};
  exchange.transport.Run(exchange.plan, deadline);
}

void RingAllGather(const Exchange& exchange, Buffer data, const std::vector<Range>& parts,
                   Deadline deadline) {
  RingPlanner planner(exchange, data, &parts);
  planner.Add({.first_sent = exchange.transport.self(), .combine = false});
  exchange.transport.Run(exchange.plan, deadline);
}

}  // namespace hearth::collective
