// All-reduce, broadcast and the other operations for ranks that exchange messages, in place on
// `data`. Each element is summed on one rank, or on all ranks in the same fixed order, so all ranks
// get the same bits. All ranks of the transport call the same function. The functions wait and
// throw as Transport::Run does.
#pragma once

#include <vector>

#include "hearth/base/deadline.h"
#include "hearth/collective/operation/backend.h"
#include "hearth/collective/transport/transport.h"

namespace hearth::collective {

// Arguments of all algorithms: the transport, and buffers that later calls reuse.
struct Exchange {
  Transport& transport;
  Plan& plan;
  std::vector<std::byte>& scratch;
};

// Every rank sends its buffer to every other rank. One step, but world - 1 times the bytes.
void DirectAllReduce(const Exchange& exchange, Buffer data, Op op, Deadline deadline);

// Ranks exchange their sums with one peer after another. log2(world) steps, but log2(world) times
// the bytes. The world must be a power of two.
void RecursiveDoublingAllReduce(const Exchange& exchange, Buffer data, Op op, Deadline deadline);

// Reduce-scatter by halving, all-gather by doubling: 2 log2(world) steps. Ranks beyond the largest
// power of two first send their data to another rank, and receive the result from it at the end.
void HalvingDoublingAllReduce(const Exchange& exchange, Buffer data, Op op, Deadline deadline);

// Parts travel around the ring in chunks and are summed on the way. 2 (world - 1) steps, fewest
// bytes.
void RingAllReduce(const Exchange& exchange, Buffer data, Op op, Deadline deadline);
void RingReduceScatter(const Exchange& exchange, Buffer data, Op op, Deadline deadline);
// Rank r contributes the elements of parts[r].
void RingAllGather(const Exchange& exchange, Buffer data, const std::vector<Range>& parts,
                   Deadline deadline);

// Sums float32 values that are sent in 16 bits: in a direct reduce-scatter, the owner of a part
// adds the other ranks' values in rank order to its own float32 values; then a direct all-gather
// distributes the rounded sums. Sends half as many bytes as the ring, in 2 steps per window.
void NarrowAllReduce(const Exchange& exchange, Buffer data, Wire wire, Deadline deadline);

// Every block is sent directly to its rank: one step.
void DirectAllToAll(const Exchange& exchange, const std::byte* input, Buffer output,
                    Deadline deadline);

// Chunks are forwarded along a binomial tree rooted at `root`.
void TreeBroadcast(const Exchange& exchange, Buffer data, int root, Deadline deadline);

// log2(world) steps, rounded up.
void DisseminationBarrier(const Exchange& exchange, Deadline deadline);

}  // namespace hearth::collective
