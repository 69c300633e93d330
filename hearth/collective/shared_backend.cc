#include "hearth/collective/shared_backend.h"

#include "hearth/collective/combine.h"

namespace hearth::collective {
namespace {

// The bytes that are summed and written to all ranks while they are in the first-level cache.
constexpr size_t kStrideBytes = 16 << 10;

template <typename Function>
void ForEachStride(Range part, size_t stride, const Function& function) {
  for (size_t at = part.begin; at < part.end; at += stride) {
    function(at, std::min(stride, part.end - at));
  }
}

}  // namespace

SharedBackend::SharedBackend(LocalRanks& ranks, Arena& arena, Deadline deadline)
    : ranks_(ranks),
      arena_(arena),
      stage_(arena.Allocate(kStageBytes, deadline)),
      mailboxes_(ranks, arena, deadline) {}

void SharedBackend::AllReduce(Buffer data, Reduction how, Deadline deadline) {
  InArena(data, [&](Buffer shared) { ReduceEverywhere(shared, how.op, deadline); });
}

void SharedBackend::ReduceScatter(Buffer data, Op op, Deadline deadline) {
  // A window of the stage does not hold the same part of itself as of the whole buffer.
  if (!arena_.Find(data.data, data.bytes())) return AllReduce(data, op, deadline);
  ReduceParts(data, op, ranks_.size(), deadline);
}

void SharedBackend::AllGather(Buffer data, const std::vector<Range>& parts, Deadline deadline) {
  if (arena_.Find(data.data, data.bytes())) return GatherRanges(data, parts, deadline);
  for (int i = 0; i < ranks_.size(); ++i) {
    Broadcast(data.Slice(parts[static_cast<size_t>(i)]), i, deadline);
  }
}

// Each rank puts the same stretch of all its blocks on its stage; the others take theirs from it.
void SharedBackend::AllToAll(const std::byte* input, Buffer output, Deadline deadline) {
  const auto world = static_cast<size_t>(ranks_.size());
  const auto self = static_cast<size_t>(ranks_.self());
  const size_t block = output.bytes() / world;
  const size_t window = std::max<size_t>(kStageBytes / world, 1);
  const auto place = *arena_.Find(stage_, kStageBytes);
  for (size_t at = 0; at < block; at += window) {
    const size_t size = std::min(window, block - at);
    for (size_t to = 0; to < world; ++to) {
      std::memcpy(stage_ + to * size, input + to * block + at, size);
    }
    ranks_.Meet(deadline);
    for (size_t from = 0; from < world; ++from) {
      const std::byte* theirs = arena_.At(place, static_cast<int>(from));
      std::memcpy(output.data + from * block + at, theirs + self * size, size);
    }
    ranks_.Meet(deadline);
  }
}

void SharedBackend::Broadcast(Buffer data, int root, Deadline deadline) {
  InArena(data, [&](Buffer shared) { CopyFrom(root, shared, deadline); });
}

void SharedBackend::Barrier(Deadline deadline) { ranks_.Meet(deadline); }

void SharedBackend::Send(Buffer data, int to, Deadline deadline) {
  mailboxes_.Send(call_, data, to, deadline);
}

void SharedBackend::Receive(Buffer data, int from, Deadline deadline) {
  mailboxes_.Receive(call_, data, from, deadline);
}

std::string SharedBackend::WhoLeft() { return ranks_.WhoLeft(); }

void SharedBackend::Leave() { ranks_.Leave(); }

void SharedBackend::ReduceEverywhere(Buffer data, Op op, Deadline deadline) {
  ranks_.Meet(deadline);
  const int last = ranks_.size() - 1;
  if (last == 0) return;
  const auto place = *arena_.Find(data.data, data.bytes());
  const size_t size = SizeOf(data.type);
  const Arithmetic how = {data.type, op};
  const Range part = Part(data.count, ranks_.size(), ranks_.self());
  ForEachStride(part, kStrideBytes / size, [&](size_t at, size_t count) {
    const auto of = [&](int index) { return arena_.At(place, index) + at * size; };
    for (int i = 1; i < last; ++i) Combine(how, of(0), of(i), count);
    CombineBoth(how, of(0), of(last), count);
    for (int i = 1; i < last; ++i) std::memcpy(of(i), of(0), count * size);
  });
  ranks_.Meet(deadline);
}

void SharedBackend::ReduceParts(Buffer data, Op op, int parts, Deadline deadline) {
  ranks_.Meet(deadline);
  const auto place = *arena_.Find(data.data, data.bytes());
  const size_t size = SizeOf(data.type);
  const Arithmetic how = {data.type, op};
  const int self = ranks_.self();
  const Range part = self < parts ? Part(data.count, parts, self) : Range{};
  ForEachStride(part, kStrideBytes / size, [&](size_t at, size_t count) {
    const auto of = [&](int index) { return arena_.At(place, index) + at * size; };
    // The sum grows in rank 0's buffer, so that the order is the same for every owner.
    for (int i = 1; i < ranks_.size(); ++i) Combine(how, of(0), of(i), count);
    if (self != 0) std::memcpy(of(self), of(0), count * size);
  });
  ranks_.Meet(deadline);
}

void SharedBackend::GatherParts(Buffer data, int parts, Deadline deadline) {
  std::vector<Range> ranges(static_cast<size_t>(ranks_.size()));
  for (int i = 0; i < parts; ++i) ranges[static_cast<size_t>(i)] = Part(data.count, parts, i);
  GatherRanges(data, ranges, deadline);
}

void SharedBackend::GatherRanges(Buffer data, const std::vector<Range>& parts, Deadline deadline) {
  ranks_.Meet(deadline);
  const auto place = *arena_.Find(data.data, data.bytes());
  for (int i = 0; i < ranks_.size(); ++i) {
    if (i == ranks_.self()) continue;
    const Buffer part = data.Slice(parts[static_cast<size_t>(i)]);
    if (part.count == 0) continue;
    std::memcpy(part.data, arena_.At(place, i) + (part.data - data.data), part.bytes());
  }
  ranks_.Meet(deadline);
}

void SharedBackend::CopyFrom(int root, Buffer data, Deadline deadline) {
  ranks_.Meet(deadline);
  if (root != ranks_.self()) {
    const auto place = *arena_.Find(data.data, data.bytes());
    std::memcpy(data.data, arena_.At(place, root), data.bytes());
  }
  ranks_.Meet(deadline);
}

}  // namespace hearth::collective
