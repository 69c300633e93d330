// Writing side of a ring.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>

#include "hearth/base/deadline.h"
#include "hearth/base/error.h"
#include "hearth/batch/arrow_c_abi.h"
#include "hearth/ring/ring.h"
#include "hearth/ring/ring_memory.h"
#include "hearth/ring/ring_signal.h"

namespace hearth::batch {
class ArrowImage;
class ChunksImage;
}  // namespace hearth::batch

namespace hearth::ring {

// The writing side. One thread writes; any thread may call Close(). The Write calls wait for space.
// They return false once the reader needs no more rows, and throw kUnavailable if the reader died,
// kDeadlineExceeded if it has not freed enough space by the deadline, kAborted after Close(). If a
// writer is destroyed before WriteEnd(), its reader fails as if the process had died.
class RingWriter {
 public:
  explicit RingWriter(RingEnd end, size_t block_bytes = size_t{4} << 20);

  // Copies the batch into the ring, split by rows into entries of at most `block_bytes` (a larger
  // single row is one entry, or several parts if it is larger than the ring). The structs must
  // outlive the call. Throws kInvalidArgument for an unsupported type, kResourceExhausted for a row
  // of more than kMaxBatchBytes.
  bool WriteArrow(const ArrowSchema& schema, const ArrowArray& array, Deadline deadline);

  // Writes chunks directly into the ring as one entry. Throws kResourceExhausted if they do not fit
  // in the ring.
  bool WriteChunks(const batch::ChunksImage& chunks, Deadline deadline);

  // Writes a mark between rows, for example at the end of a partition.
  bool WriteFlush(Deadline deadline);
  // Writes the end of the stream: no rows follow. Waits, returns and throws like the other Write
  // calls.
  bool WriteEnd(Deadline deadline);

  // Makes the reader's next call throw this error, before any batch that is still in the ring.
  // Never waits.
  void Fail(const Error& error);

  void Close();

  size_t capacity() const { return memory_.capacity(); }

 private:
  bool WriteRows(const batch::ArrowImage& rows, int64_t begin, int64_t count, Deadline deadline);
  bool WriteParts(const batch::ArrowImage& rows, int64_t begin, int64_t count, Deadline deadline);
  bool WriteMark(EntryKind kind, Deadline deadline);
  // Waits for space for an entry; null once the reader needs no more rows.
  std::byte* Reserve(EntryKind kind, uint64_t bytes, Deadline deadline);
  void Publish(uint64_t bytes);
  [[noreturn]] void ThrowStalled(uint64_t bytes, RingSignal::Outcome outcome) const;

  RingMemory memory_;
  RingSignal signal_;
  size_t block_bytes_;
  uint64_t position_;
  std::atomic<bool> closed_ = false;
};

}  // namespace hearth::ring
