// The writing side of a ring.
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
class PiecesImage;
}  // namespace hearth::batch

namespace hearth::ring {

// One thread writes; Close() may come from any. The Write calls wait for room: they return false
// once the reader wants no more rows, and throw kUnavailable when the reader died,
// kDeadlineExceeded when it took nothing for too long, kAborted after Close(). To the reader, a
// writer that is destroyed before WriteEnd() has died.
class RingWriter {
 public:
  explicit RingWriter(RingEnd end, size_t block_bytes = size_t{4} << 20);

  // Copies the batch into the ring, split by rows into entries of at most `block_bytes` (a bigger
  // single row is one entry, or several parts where it is larger than the ring). Borrows the
  // structs. Throws kInvalidArgument for a type that batches cannot have, kResourceExhausted for a
  // row of more than kMostBatchBytes.
  bool WriteArrow(const ArrowSchema& schema, const ArrowArray& array, Deadline deadline);

  // The same for pieces, gathered straight into the ring as one entry. Throws kResourceExhausted if
  // that is larger than the ring.
  bool WritePieces(const batch::PiecesImage& pieces, Deadline deadline);

  // A mark between rows, as at the end of a partition.
  bool WriteFlush(Deadline deadline);
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
  // Waits for room for an entry; null once the reader wants no more.
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
