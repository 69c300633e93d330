#include "hearth/feed/ring_memory.h"

#include <sys/stat.h>

#include <new>

#include "hearth/base/error.h"

namespace hearth::feed {
namespace {

constexpr uint32_t kMagic = 0x474e4952;  // "RING"
constexpr uint32_t kVersion = 1;
constexpr size_t kControlBytes = 4096;
constexpr size_t kMinCapacity = 64 << 10;

}  // namespace

Fd RingMemory::Create(size_t capacity_bytes) {
  Require(capacity_bytes >= kMinCapacity, ErrorCode::kInvalidArgument,
          "a ring of {} bytes is too small; its capacity must be at least {}", capacity_bytes,
          kMinCapacity);
  const size_t capacity = RoundUpToPages(capacity_bytes);
  Fd memory = CreateSharedMemory("hearth-ring", kControlBytes + capacity);
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
  const size_t capacity = static_cast<size_t>(status.st_size) - kControlBytes;
  Require(
      control().magic == kMagic && control().version == kVersion && control().capacity == capacity,
      ErrorCode::kInvalidArgument, "descriptor {} is not the memory of a ring of this version",
      memory.get());
  data_ = Mapping::Mirrored(memory.get(), kControlBytes, capacity);
}

}  // namespace hearth::feed
