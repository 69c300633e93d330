#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "hearth/base/fd.h"
#include "hearth/base/shared_memory.h"

namespace hearth::ring {

// Control fields of a ring. Positions only increase; position % (capacity + window) is the offset
// in the data. After an entry that ends outside the window, the next position is the window's start
// again (RingMemory::After). Each group of fields is written by one side only.
struct RingControl {
  uint32_t magic;
  uint32_t version;
  uint64_t capacity;

  // Written by the writer only.
  alignas(64) std::atomic<uint64_t> written;
  std::atomic<uint32_t> writer_waits;
  std::atomic<uint32_t> failed;  // set last, after failure_code, failure_bytes and failure_text
  uint32_t failure_code;
  uint32_t failure_bytes;

  // Written by the reader only.
  alignas(64) std::atomic<uint64_t> released;
  std::atomic<uint32_t> reader_waits;
  std::atomic<uint32_t> reader_done;  // the reader needs no more rows; not an error

  alignas(64) char failure_text[2048];
};
static_assert(sizeof(RingControl) <= 4096 && std::atomic<uint64_t>::is_always_lock_free);

// Types of entries. A batch larger than the ring is sent in several entries: the last one has type
// kBatch, the others kPart.
enum class EntryKind : uint32_t { kBatch = 1, kFlush = 2, kEnd = 3, kPart = 4 };

// Size limit of a batch, because several copies of it may be in memory during the transfer.
inline constexpr uint64_t kMaxBatchBytes = uint64_t{4} << 30;

// A header precedes every entry; entries are padded to kImageAlignment.
struct EntryHeader {
  uint32_t kind;
  uint32_t reserved;
  uint64_t bytes;  // payload after this header
  uint64_t padding[6];
};
static_assert(sizeof(EntryHeader) == 64);

// Shared memory of one ring: a page of control fields, then the data. Both sides map the same
// memfd. Each entry is contiguous. It starts in the window, the first bytes of the data, but may
// extend beyond it. The window's memory is reused constantly and therefore stays in the CPU's
// cache.
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
  // Size of the window, in which entries start: the capacity, but no more than stays in the CPU's
  // cache.
  size_t window() const { return data_.size() - capacity_; }

  // Validates and returns a position from a control field; throws kDataLoss if no entry can start
  // there.
  uint64_t Checked(uint64_t position) const;
  // Address of a validated position; `capacity()` contiguous bytes follow.
  std::byte* At(uint64_t position) const { return data_.data() + OffsetOf(position); }
  // Position after an entry of this size, including its header and padding.
  uint64_t After(uint64_t position, uint64_t entry_bytes) const;
  // True if such an entry fits at `position` when everything before `released` is free. Throws
  // kDataLoss if `released` is impossible.
  bool HasSpace(uint64_t position, uint64_t released, uint64_t entry_bytes) const;
  // Upper bound of the bytes that are written but not released.
  uint64_t most_in_flight() const { return 2 * data_.size(); }

 private:
  uint64_t OffsetOf(uint64_t position) const { return position % data_.size(); }
  uint64_t Lap(uint64_t position) const { return position / data_.size(); }

  Mapping control_;
  Mapping data_;
  size_t capacity_;
};

}  // namespace hearth::ring
