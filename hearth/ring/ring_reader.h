// The reading side of a ring.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "hearth/base/deadline.h"
#include "hearth/ring/ring.h"
#include "hearth/ring/ring_memory.h"
#include "hearth/ring/ring_signal.h"

namespace hearth::ring {

struct RingEntry {
  EntryKind kind;
  std::span<const std::byte> image;  // of a batch, inside the ring or a buffer; not yet checked
};

// One thread reads; Close() may come from any.
class RingReader {
 public:
  explicit RingReader(RingEnd end);

  // The next entry, in order, without a copy: it stays in the ring, and keeps its room there, until
  // the next call or Release(). A batch that is larger than the ring is put together in a buffer,
  // where it stays as long. After the end, every call gives kEnd. Throws the writer's own error
  // if that failed, kUnavailable when it died before the end, kDeadlineExceeded,
  // kDataLoss for a damaged ring, kAborted after Close().
  RingEntry Next(Deadline deadline);

  // Whether Next() would answer at once, if only by an error. Of the thread that reads.
  bool HasNext() { return IsReady() || signal_.PeerGone(); }

  // Gives the last entry's room back before the next call.
  void Release();

  // Tells the writer that no more rows are wanted, and wakes this side's own wait.
  void Close();

 private:
  bool IsReady() const;
  void ThrowWriterFailure() const;
  RingEntry NextEntry(Deadline deadline);
  RingEntry EntryAt(uint64_t written);

  RingMemory memory_;
  RingSignal signal_;
  uint64_t position_;  // of the next entry
  // Of a batch that is larger than the ring; whether all have come, so that it may be released.
  std::vector<std::byte> parts_;
  bool whole_ = false;
  bool ended_ = false;
  std::atomic<bool> closed_ = false;
};

}  // namespace hearth::ring
