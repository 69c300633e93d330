#pragma once

#include <algorithm>
#include <cstring>
#include <vector>

#include "hearth/collective/operation/backend.h"
#include "hearth/collective/shared_memory/arena.h"
#include "hearth/collective/shared_memory/local_ranks.h"
#include "hearth/collective/shared_memory/mailbox.h"

namespace hearth::collective {

// Backend for ranks that all share memory: each rank reduces its part of the buffers in place, in
// rank order, and writes the result into all of them. Buffers outside the arena are copied through
// a staging area in the arena.
class SharedBackend : public Backend {
 public:
  // Allocates the staging area; collective over all local ranks. Throws kDeadlineExceeded, or the
  // failure of a peer. `ranks` and `arena` must outlive the backend.
  SharedBackend(LocalRanks& ranks, Arena& arena, Deadline deadline);

  void Begin(const Call& call) override { call_ = call; }
  // Ignores how.wire: no data is sent, so float32 stays float32.
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

  // Building blocks for buffers in the arena; they wait and throw as the operations above do. The
  // first `parts` ranks own one part each.
  void ReduceParts(Buffer data, Op op, int parts, Deadline deadline);
  void GatherParts(Buffer data, int parts, Deadline deadline);
  void GatherRanges(Buffer data, const std::vector<Range>& parts, Deadline deadline);

  // Calls `operate` once with `data` if it is in the arena. Otherwise copies `data` window by
  // window to the staging area, calls `operate` on each window and copies the result back.
  template <typename Operate>
  void InArena(Buffer data, const Operate& operate) const {
    if (arena_.Find(data.data, data.bytes())) return operate(data);
    const size_t window = kStageBytes / SizeOf(data.type);
    for (size_t at = 0; at < data.count; at += window) {
      const Buffer own = data.Slice({at, std::min(at + window, data.count)});
      std::memcpy(stage_, own.data, own.bytes());
      operate(Buffer{stage_, own.count, own.type});
      std::memcpy(own.data, stage_, own.bytes());
    }
  }

 private:
  // Small enough for the windows of all ranks to stay in the cores' caches while they are copied
  // and summed.
  static constexpr size_t kStageBytes = 512 << 10;
  // Up to this size, every rank sums the whole buffer, which needs one synchronisation instead of
  // two.
  static constexpr size_t kSmallBytes = 8 << 10;

  void ReduceSmall(Buffer data, Op op, Deadline deadline);
  void ReduceEverywhere(Buffer data, Op op, Deadline deadline);
  void ReduceThroughStage(Buffer data, Op op, Deadline deadline);
  void CopyFrom(int root, Buffer data, Deadline deadline);

  LocalRanks& ranks_;
  Arena& arena_;
  std::byte* stage_;
  std::byte* small_;  // two buffers, which operations use alternately
  size_t turn_ = 0;
  Mailboxes mailboxes_;
  Call call_;
};

}  // namespace hearth::collective
