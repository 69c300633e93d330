#include "hearth/ring/ring_memory.h"

#include <sys/stat.h>

#include <algorithm>
#include <new>

#include "hearth/base/error.h"

namespace hearth::ring {
namespace {

constexpr uint32_t kMagic = 0x474e4952;  // "RING"
constexpr uint32_t kVersion = 3;
constexpr size_t kControlBytes = 4096;
constexpr size_t kMinCapacity = 64 << 10;
// Limit of positions, so that additions to them cannot overflow.
constexpr uint64_t kMaxPosition = uint64_t{1} << 62;
// Two rings with this window fit in an L3 cache of 32 MB. A small window also means fewer page
// faults.
constexpr size_t kMaxWindow = 8 << 20;

size_t WindowOf(size_t capacity) { return std::min(capacity, kMaxWindow); }

}  // namespace

Fd RingMemory::Create(size_t capacity_bytes) {
  Require(capacity_bytes >= kMinCapacity, ErrorCode::kInvalidArgument,
          "a ring of {} bytes is too small; its capacity must be at least {}", capacity_bytes,
          kMinCapacity);
  const size_t capacity = RoundUpToPages(capacity_bytes);
  Fd memory = CreateSharedMemory("hearth-ring", kControlBytes + capacity + WindowOf(capacity));
  // A temporary mapping: later, each side maps the memory by its own RingMemory.
  const Mapping page(memory.get(), 0, kControlBytes);
  auto* control = new (page.data()) RingControl();
  control->capacity = capacity;
  control->version = kVersion;
  control->magic = kMagic;
  return memory;
}

RingMemory::RingMemory(const Fd& memory) {
  struct stat status;
  Require(::fstat(memory.get(), &status) == 0 && status.st_size > off_t{kControlBytes},
          ErrorCode::kInvalidArgument, "descriptor {} is not the memory of a ring", memory.get());
  control_ = Mapping(memory.get(), 0, kControlBytes);
  const size_t bytes = static_cast<size_t>(status.st_size) - kControlBytes;
  capacity_ = control().capacity;
  // Checks the minimum capacity, too, because offsets of entries are computed from the capacity and
  // would wrap if it were too small.
  Require(control().magic == kMagic && control().version == kVersion && capacity_ >= kMinCapacity &&
              capacity_ == RoundUpToPages(capacity_) && capacity_ <= bytes &&
              capacity_ + WindowOf(capacity_) == bytes,
          ErrorCode::kInvalidArgument, "descriptor {} is not the memory of a ring of this version",
          memory.get());
  data_ = Mapping(memory.get(), kControlBytes, bytes);
}

uint64_t RingMemory::Checked(uint64_t position) const {
  const bool sound = position < kMaxPosition && OffsetOf(position) < window() &&
                     position % sizeof(EntryHeader) == 0;
  Require(sound, ErrorCode::kDataLoss,
          "the shared-memory ring is damaged: no entry can start at {}", position);
  return position;
}

uint64_t RingMemory::After(uint64_t position, uint64_t entry_bytes) const {
  const uint64_t end = position + entry_bytes;
  return OffsetOf(end) < window() ? end : (Lap(position) + 1) * data_.size();
}

bool RingMemory::HasSpace(uint64_t position, uint64_t released, uint64_t entry_bytes) const {
  Require(released <= position && Lap(position) - Lap(released) <= 1, ErrorCode::kDataLoss,
          "the shared-memory ring is damaged: its reader released bytes up to {}, but only {} "
          "bytes were written",
          released, position);
  // If both positions are in the same lap, the unreleased entries are before `position`; else they
  // are after it.
  return Lap(released) == Lap(position) || OffsetOf(position) + entry_bytes <= OffsetOf(released);
}

}  // namespace hearth::ring
