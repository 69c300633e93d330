// The algorithms for ranks that exchange messages, in place on `data`. `plan` is working memory.
// Each element is summed in one place or in one fixed order, so all ranks get the same bits.
#pragma once

#include <vector>

#include "hearth/base/deadline.h"
#include "hearth/collective/backend.h"
#include "hearth/collective/transport.h"

namespace hearth::collective {

// What the algorithms share: the transport, and working memory that outlives the call.
struct Exchange {
  Transport& transport;
  Plan& plan;
  std::vector<std::byte>& scratch;
};

// Everybody sends everything to everybody: one step, world - 1 times the bytes.
void DirectAllReduce(const Exchange& exchange, Buffer data, Op op, Deadline deadline);

// Reduce-scatter by halving, all-gather by doubling: 2 log2(world) steps. Ranks beyond a power of
// two first give their data to another rank and get the result from it.
void HalvingDoublingAllReduce(const Exchange& exchange, Buffer data, Op op, Deadline deadline);

// Parts travel around the ring in chunks; sums grow on the way. 2 (world - 1) steps, least bytes.
void RingAllReduce(const Exchange& exchange, Buffer data, Op op, Deadline deadline);
void RingReduceScatter(const Exchange& exchange, Buffer data, Op op, Deadline deadline);
// Rank r has the elements of parts[r].
void RingAllGather(const Exchange& exchange, Buffer data, const std::vector<Range>& parts,
                   Deadline deadline);

// Sums of float32 whose bytes travel in 16 bits: a direct reduce-scatter, added in rank order as
// float32, and a direct all-gather of the rounded sums. Half the ring's bytes in 2 steps a window.
void NarrowAllReduce(const Exchange& exchange, Buffer data, Wire wire, Deadline deadline);

// Every block goes straight to its rank: one step.
void DirectAllToAll(const Exchange& exchange, const std::byte* input, Buffer output,
                    Deadline deadline);

// Chunks go down a binomial tree rooted at `root`.
void TreeBroadcast(const Exchange& exchange, Buffer data, int root, Deadline deadline);

// log2(world) steps, rounded up.
void DisseminationBarrier(const Exchange& exchange, Deadline deadline);

}  // namespace hearth::collective
