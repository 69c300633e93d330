// Reading side of a ring.
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

// An entry, valid until the reader's next call.
struct RingEntry {
  EntryKind kind;
  std::span<const std::byte> image;  // of a batch, not validated; in the ring or in a buffer
};

// The reading side. One thread reads; any thread may call Close().
class RingReader {
 public:
  explicit RingReader(RingEnd end);

  // Returns the next entry in order, without a copy: the entry occupies its space in the ring until
  // the next call or Release(). A batch larger than the ring is assembled in a buffer with the same
  // lifetime. After the end, every call returns kEnd. Throws the writer's error if the writer
  // called Fail(), kUnavailable if it died before the end, kDeadlineExceeded, kDataLoss for a
  // damaged ring, kAborted after Close().
  RingEntry Next(Deadline deadline);

  // True if Next() would return (or throw) at once. Only for the reading thread.
  bool HasNext() { return IsReady() || signal_.PeerGone(); }

  // Frees the last entry's space without waiting for the next call of Next().
  void Release();

  // Notifies the writer that no more rows are needed, and ends this side's own wait.
  void Close();

 private:
  bool IsReady() const;
  void ThrowWriterFailure() const;
  RingEntry NextEntry(Deadline deadline);
  RingEntry EntryAt(uint64_t written);

  RingMemory memory_;
  RingSignal signal_;
  uint64_t position_;  // position of the next entry
  // Parts of a batch larger than the ring; complete once the last part has arrived.
  std::vector<std::byte> parts_;
  bool whole_ = false;
  bool ended_ = false;
  std::atomic<bool> closed_ = false;
};

}  // namespace hearth::ring
