// The shared memory of one ring: a page of control words and the bytes. Both sides map the same
// memfd. An entry starts in the window, the first bytes of the ring, and may reach beyond it: every
// entry is contiguous, and what both sides touch again and again stays in the processor's cache.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "hearth/base/fd.h"
#include "hearth/base/shared_memory.h"

namespace hearth::ring {

// Positions only rise; position % (capacity + window) is where they lie. From an entry that ends
// outside of the window the next position is that of the window's start (RingMemory::After).
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

// A batch that is larger than the ring comes as parts, the last of which is of kind kBatch.
enum class EntryKind : uint32_t { kBatch = 1, kFlush = 2, kEnd = 3, kPart = 4 };

// The largest batch: a row of that many bytes may be in memory several times on its way.
inline constexpr uint64_t kMostBatchBytes = uint64_t{4} << 30;

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
  // The bytes of the largest entry, with its header.
  size_t capacity() const { return capacity_; }
  // Where entries start: the capacity, but not more than stays in a processor's cache.
  size_t window() const { return data_.size() - capacity_; }

  // Checks a position from a control word; throws kDataLoss if no entry can start there.
  uint64_t Checked(uint64_t position) const;
  // The byte at a checked position; the `capacity()` bytes from there on are contiguous.
  std::byte* At(uint64_t position) const { return data_.data() + Place(position); }
  // The position of what comes after an entry of so many bytes, with its header and padding.
  uint64_t After(uint64_t position, uint64_t entry_bytes) const;
  // Whether such an entry can be written at `position` while all before `released` was given back.
  // Throws kDataLoss where nobody can have released that.
  bool HasRoom(uint64_t position, uint64_t released, uint64_t entry_bytes) const;
  // More bytes than a reader can ever be behind its writer.
  uint64_t most_in_flight() const { return 2 * data_.size(); }

 private:
  uint64_t Place(uint64_t position) const { return position % data_.size(); }
  uint64_t Lap(uint64_t position) const { return position / data_.size(); }

  Mapping control_;
  Mapping data_;
  size_t capacity_;
};

}  // namespace hearth::ring
