#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "hearth/base/fd.h"
#include "hearth/base/shared_memory.h"

namespace hearth::ring {

// Positions only increase; position % (capacity + window) is the offset in the data. After an entry
// that ends outside of the window, the next position is at the window's start again
// (RingMemory::After). Each group of words is written by one side only.
struct RingControl {
  uint32_t magic;
  uint32_t version;
  uint64_t capacity;

  // Written by the writer.
  alignas(64) std::atomic<uint64_t> written;
  std::atomic<uint32_t> writer_waits;
  std::atomic<uint32_t> failed;  // set last, after code and text below
  uint32_t failure_code;
  uint32_t failure_bytes;

  // Written by the reader.
  alignas(64) std::atomic<uint64_t> released;
  std::atomic<uint32_t> reader_waits;
  std::atomic<uint32_t> reader_done;  // needs no more rows; not an error

  alignas(64) char failure_text[2048];
};
static_assert(sizeof(RingControl) <= 4096 && std::atomic<uint64_t>::is_always_lock_free);

// A batch larger than the ring is sent in parts; the last one has kind kBatch.
enum class EntryKind : uint32_t { kBatch = 1, kFlush = 2, kEnd = 3, kPart = 4 };

// Size limit of a batch: several copies of it may be in memory on its way.
inline constexpr uint64_t kMaxBatchBytes = uint64_t{4} << 30;

// Precedes every entry; entries are padded to kImageAlignment.
struct EntryHeader {
  uint32_t kind;
  uint32_t reserved;
  uint64_t bytes;  // payload after this header
  uint64_t padding[6];
};
static_assert(sizeof(EntryHeader) == 64);

// Shared memory of one ring: a page of control words, then the data. Both sides map the same memfd.
// Every entry starts in the window, the first bytes of the data, and is contiguous: it may extend
// beyond the window. Memory used over and over therefore stays in the processor's cache.
class RingMemory {
 public:
  // Creates the memory of a ring, rounded up to whole pages; throws kInvalidArgument for less than
  // 64 KiB.
  static Fd Create(size_t capacity_bytes);

  // Maps a ring made by Create; throws kInvalidArgument for anything else.
  explicit RingMemory(const Fd& memory);

  RingControl& control() const { return *reinterpret_cast<RingControl*>(control_.data()); }
  // Size of the largest entry, including its header.
  size_t capacity() const { return capacity_; }
  // Range in which entries start: the capacity, limited to what stays in a processor's cache.
  size_t window() const { return data_.size() - capacity_; }

  // Validates a position from a control word; throws kDataLoss if no entry can start there.
  uint64_t Checked(uint64_t position) const;
  // Address of a validated position; `capacity()` contiguous bytes follow.
  std::byte* At(uint64_t position) const { return data_.data() + OffsetOf(position); }
  // Position after an entry of this size, including its header and padding.
  uint64_t After(uint64_t position, uint64_t entry_bytes) const;
  // Whether such an entry fits at `position` when everything before `released` is free. Throws
  // kDataLoss if `released` is impossible.
  bool HasSpace(uint64_t position, uint64_t released, uint64_t entry_bytes) const;
  // Upper bound of the bytes between reader and writer.
  uint64_t most_in_flight() const { return 2 * data_.size(); }

 private:
  uint64_t OffsetOf(uint64_t position) const { return position % data_.size(); }
  uint64_t Lap(uint64_t position) const { return position / data_.size(); }

  Mapping control_;
  Mapping data_;
  size_t capacity_;
};

}  // namespace hearth::ring
