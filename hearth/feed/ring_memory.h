// The shared memory of one ring: a page of control words and the bytes, mapped twice in a row so
// that every entry is contiguous. Both sides map the same memfd.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "hearth/base/fd.h"
#include "hearth/base/shared_memory.h"

namespace hearth::feed {

// Positions count all bytes ever written or released; position % capacity is where they lie.
// Each group of words is written by one side only.
struct RingControl {
  uint32_t magic;
  uint32_t version;
  uint64_t capacity;

  // The writer's.
  alignas(64) std::atomic<uint64_t> written;
  std::atomic<uint32_t> writer_waits;
  std::atomic<uint32_t> failed;  // set last: code and text below are complete
  uint32_t failure_code;
  uint32_t failure_bytes;

  // The reader's.
  alignas(64) std::atomic<uint64_t> released;
  std::atomic<uint32_t> reader_waits;
  std::atomic<uint32_t> reader_done;  // wants no more rows, which is no failure

  alignas(64) char failure_text[2048];
};
static_assert(sizeof(RingControl) <= 4096 && std::atomic<uint64_t>::is_always_lock_free);

enum class EntryKind : uint32_t { kBatch = 1, kFlush = 2, kEnd = 3 };

// In front of every entry, which is padded to kImageAlignment.
struct EntryHeader {
  uint32_t kind;
  uint32_t reserved;
  uint64_t bytes;  // behind this header
  uint64_t padding[6];
};
static_assert(sizeof(EntryHeader) == 64);

class RingMemory {
 public:
  // The memory of a new ring, rounded up to whole pages; throws kInvalidArgument for less than
  // 64 KiB.
  static Fd Create(size_t capacity_bytes);

  // Maps a ring that Create made; throws kInvalidArgument for anything else.
  explicit RingMemory(const Fd& memory);

  RingControl& control() const { return *reinterpret_cast<RingControl*>(control_.data()); }
  size_t capacity() const { return data_.size(); }
  // The byte at a position; the `capacity()` bytes from there on are contiguous.
  std::byte* At(uint64_t position) const { return data_.data() + position % capacity(); }

 private:
  Mapping control_;
  Mapping data_;
};

}  // namespace hearth::feed
