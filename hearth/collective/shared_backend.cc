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
    : ranks_(ranks), arena_(arena), stage_(arena.Allocate(kStageBytes, deadline)) {}

void SharedBackend::AllReduce(Buffer data, Op op, Deadline deadline) {
  InArena(data, [&](Buffer shared) { ReduceEverywhere(shared, op, deadline); });
}

void SharedBackend::ReduceScatter(Buffer data, Op op, Deadline deadline) {
  // A window of the stage does not hold the same part of itself as of the whole buffer.
  if (!arena_.Find(data.data, data.bytes())) return AllReduce(data, op, deadline);
  ReduceParts(data, op, ranks_.size(), deadline);
}

void SharedBackend::AllGather(Buffer data, Deadline deadline) {
  if (arena_.Find(data.data, data.bytes())) return GatherParts(data, ranks_.size(), deadline);
  for (int i = 0; i < ranks_.size(); ++i) {
    Broadcast(data.Slice(Part(data.count, ranks_.size(), i)), i, deadline);
  }
}

void SharedBackend::Broadcast(Buffer data, int root, Deadline deadline) {
  InArena(data, [&](Buffer shared) { CopyFrom(root, shared, deadline); });
}

void SharedBackend::Barrier(Deadline deadline) { ranks_.Meet(deadline); }

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
  ranks_.Meet(deadline);
  const auto place = *arena_.Find(data.data, data.bytes());
  for (int i = 0; i < parts; ++i) {
    if (i == ranks_.self()) continue;
    const Buffer part = data.Slice(Part(data.count, parts, i));
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
