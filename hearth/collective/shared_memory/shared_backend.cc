#include "hearth/collective/shared_memory/shared_backend.h"

#include "hearth/collective/operation/combine.h"

namespace hearth::collective {
namespace {

// Bytes that are summed and written to all ranks at a time, so that they stay in the first-level
// cache.
constexpr size_t kStrideBytes = 16 << 10;

template <typename Function>
void ForEachStride(Range part, size_t stride, const Function& function) {
  for (size_t at = part.begin; at < part.end; at += stride) {
    function(at, std::min(stride, part.end - at));
  }
}

// Sums `part` of the buffers of(0) to of(ranks - 1), in this order, and writes the sum to all of
// them.
template <typename Of>
void ReduceForAll(Arithmetic how, Range part, int ranks, const Of& of) {
  const size_t size = SizeOf(how.type);
  const int last = ranks - 1;
  ForEachStride(part, kStrideBytes / size, [&](size_t at, size_t count) {
    const auto here = [&](int index) { return of(index) + at * size; };
    // Every part is summed in rank order, so the result does not depend on which rank sums it, or
    // when. The last addition writes two buffers in one pass; with two ranks it is the only
    // addition.
    for (int i = 1; i < last; ++i) Combine(how, here(0), here(i), count);
    CombineBoth(how, here(0), here(last), count);
    for (int i = 1; i < last; ++i) std::memcpy(here(i), here(0), count * size);
  });
}

}  // namespace

SharedBackend::SharedBackend(LocalRanks& ranks, Arena& arena, Deadline deadline)
    : ranks_(ranks),
      arena_(arena),
      stage_(arena.Allocate(kStageBytes, deadline)),
      small_(arena.Allocate(2 * kSmallBytes, deadline)),
      mailboxes_(ranks, arena, deadline) {}

void SharedBackend::AllReduce(Buffer data, Reduction how, Deadline deadline) {
  if (ranks_.size() == 1) return ranks_.Synchronize(deadline);
  if (data.bytes() <= kSmallBytes) return ReduceSmall(data, how.op, deadline);
  if (arena_.Find(data.data, data.bytes())) return ReduceEverywhere(data, how.op, deadline);
  ReduceThroughStage(data, how.op, deadline);
}

void SharedBackend::ReduceScatter(Buffer data, Op op, Deadline deadline) {
  // Data outside the arena is staged in windows. A rank's part of a window is not in its part of
  // the whole buffer, so the whole buffer is reduced on all ranks.
  if (!arena_.Find(data.data, data.bytes())) return AllReduce(data, op, deadline);
  ReduceParts(data, op, ranks_.size(), deadline);
}

void SharedBackend::AllGather(Buffer data, const std::vector<Range>& parts, Deadline deadline) {
  if (arena_.Find(data.data, data.bytes())) return GatherRanges(data, parts, deadline);
  for (int i = 0; i < ranks_.size(); ++i) {
    Broadcast(data.Slice(parts[static_cast<size_t>(i)]), i, deadline);
  }
}

// Each rank stages the same range of all its blocks; each other rank copies its block from there.
void SharedBackend::AllToAll(const std::byte* input, Buffer output, Deadline deadline) {
  const auto world = static_cast<size_t>(ranks_.size());
  const auto self = static_cast<size_t>(ranks_.self());
  const size_t block = output.bytes() / world;
  const size_t window = std::max<size_t>(kStageBytes / world, 1);
  const auto location = *arena_.Find(stage_, kStageBytes);
  for (size_t at = 0; at < block; at += window) {
    const size_t size = std::min(window, block - at);
    for (size_t to = 0; to < world; ++to) {
      std::memcpy(stage_ + to * size, input + to * block + at, size);
    }
    ranks_.Synchronize(deadline);
    for (size_t from = 0; from < world; ++from) {
      const std::byte* theirs = arena_.At(location, static_cast<int>(from));
      std::memcpy(output.data + from * block + at, theirs + self * size, size);
    }
    // Peers must have read the stage before the next window overwrites it.
    ranks_.Synchronize(deadline);
  }
}

void SharedBackend::Broadcast(Buffer data, int root, Deadline deadline) {
  InArena(data, [&](Buffer shared) { CopyFrom(root, shared, deadline); });
}

void SharedBackend::Barrier(Deadline deadline) { ranks_.Synchronize(deadline); }

void SharedBackend::Send(Buffer data, int to, Deadline deadline) {
  mailboxes_.Send(call_, data, to, deadline);
}

void SharedBackend::Receive(Buffer data, int from, Deadline deadline) {
  mailboxes_.Receive(call_, data, from, deadline);
}

std::string SharedBackend::DepartedRank() { return ranks_.DepartedRank(); }

void SharedBackend::Leave() { ranks_.Leave(); }

// The two buffers alternate. The buffer of the operation before last can be reused, because all
// ranks read it before they reached the last operation.
void SharedBackend::ReduceSmall(Buffer data, Op op, Deadline deadline) {
  std::byte* own = small_ + turn_++ % 2 * kSmallBytes;
  std::copy_n(data.data, data.bytes(), own);  // unlike memcpy(), allows null with size 0
  ranks_.Synchronize(deadline);
  const auto location = *arena_.Find(own, data.bytes());
  if (ranks_.self() != 0) std::copy_n(arena_.At(location, 0), data.bytes(), data.data);
  for (int i = 1; i < ranks_.size(); ++i) {
    Combine({data.type, op}, data.data, arena_.At(location, i), data.count);
  }
}

// The first synchronisation ensures that all inputs are final before peers read and overwrite them.
// The second one ensures that no peer still writes to this rank's buffer when this function
// returns.
void SharedBackend::ReduceEverywhere(Buffer data, Op op, Deadline deadline) {
  ranks_.Synchronize(deadline);
  const auto location = *arena_.Find(data.data, data.bytes());
  const Range part = Part(data.count, ranks_.size(), ranks_.self());
  ReduceForAll({data.type, op}, part, ranks_.size(),
               [&](int index) { return arena_.At(location, index); });
  ranks_.Synchronize(deadline);
}

// Windows are pipelined: while some ranks still sum their parts of one window, others copy the next
// window to the staging area. A rank's own part is summed in place and never staged.
void SharedBackend::ReduceThroughStage(Buffer data, Op op, Deadline deadline) {
  const size_t size = SizeOf(data.type);
  const size_t window = kStageBytes / 2 / size;
  const size_t windows = (data.count + window - 1) / window;
  const auto slice = [&](size_t k) {
    return data.Slice({k * window, std::min((k + 1) * window, data.count)});
  };
  const auto stage = [&](size_t k) { return stage_ + k % 2 * window * size; };
  const auto copy_others = [&](std::byte* to, const std::byte* from, size_t count) {
    const Range own = Part(count, ranks_.size(), ranks_.self());
    std::memcpy(to, from, own.begin * size);
    std::memcpy(to + own.end * size, from + own.end * size, (count - own.end) * size);
  };
  // There is one synchronisation per window. Stage k % 2 can be reused, because this rank has
  // copied window k - 2 out of it, and the peers summed that window before they arrived at the last
  // synchronisation. After the synchronisation, all peers have summed window k - 1, so it can be
  // copied out.
  for (size_t k = 0; k <= windows; ++k) {
    if (k < windows) copy_others(stage(k), slice(k).data, slice(k).count);
    ranks_.Synchronize(deadline);
    if (k < windows) {
      const Buffer own = slice(k);
      const auto location = *arena_.Find(stage(k), own.bytes());
      ReduceForAll({data.type, op}, Part(own.count, ranks_.size(), ranks_.self()), ranks_.size(),
                   [&](int index) {
                     return index == ranks_.self() ? own.data : arena_.At(location, index);
                   });
    }
    if (k > 0) copy_others(slice(k - 1).data, stage(k - 1), slice(k - 1).count);
  }
}

void SharedBackend::ReduceParts(Buffer data, Op op, int parts, Deadline deadline) {
  ranks_.Synchronize(deadline);
  const auto location = *arena_.Find(data.data, data.bytes());
  const size_t size = SizeOf(data.type);
  const Arithmetic how = {data.type, op};
  const int self = ranks_.self();
  const Range part = self < parts ? Part(data.count, parts, self) : Range{};
  ForEachStride(part, kStrideBytes / size, [&](size_t at, size_t count) {
    const auto of = [&](int index) { return arena_.At(location, index) + at * size; };
    // The sum accumulates in rank 0's buffer, so that the order is the same for every owner.
    for (int i = 1; i < ranks_.size(); ++i) Combine(how, of(0), of(i), count);
    if (self != 0) std::memcpy(of(self), of(0), count * size);
  });
  ranks_.Synchronize(deadline);
}

// Ranks with index `parts` or higher have an empty range and only copy from the others.
void SharedBackend::GatherParts(Buffer data, int parts, Deadline deadline) {
  std::vector<Range> ranges(static_cast<size_t>(ranks_.size()));
  for (int i = 0; i < parts; ++i) ranges[static_cast<size_t>(i)] = Part(data.count, parts, i);
  GatherRanges(data, ranges, deadline);
}

void SharedBackend::GatherRanges(Buffer data, const std::vector<Range>& parts, Deadline deadline) {
  ranks_.Synchronize(deadline);
  const auto location = *arena_.Find(data.data, data.bytes());
  for (int i = 0; i < ranks_.size(); ++i) {
    if (i == ranks_.self()) continue;
    const Buffer part = data.Slice(parts[static_cast<size_t>(i)]);
    if (part.count == 0) continue;
    std::memcpy(part.data, arena_.At(location, i) + (part.data - data.data), part.bytes());
  }
  ranks_.Synchronize(deadline);
}

// After the second synchronisation the root may change its buffer again, because all ranks have
// copied it.
void SharedBackend::CopyFrom(int root, Buffer data, Deadline deadline) {
  ranks_.Synchronize(deadline);
  if (root != ranks_.self()) {
    const auto location = *arena_.Find(data.data, data.bytes());
    std::copy_n(arena_.At(location, root), data.bytes(), data.data);
  }
  ranks_.Synchronize(deadline);
}

}  // namespace hearth::collective
