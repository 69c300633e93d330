#include "hearth/ring/ring_reader.h"

#include <algorithm>
#include <cstring>
#include <string>
#include <utility>

#include "hearth/base/error.h"
#include "hearth/batch/batch_image.h"

namespace hearth::ring {

RingReader::RingReader(RingEnd end)
    : memory_(end.memory),
      signal_(std::move(end.signal)),
      position_(memory_.Checked(memory_.control().released.load())) {}

RingEntry RingReader::Next(Deadline deadline) {
  RingEntry entry = NextEntry(deadline);
  while (entry.kind == EntryKind::kPart || !parts_.empty()) {
    const bool sound = (entry.kind == EntryKind::kPart || entry.kind == EntryKind::kBatch) &&
                       !entry.image.empty() && entry.image.size() <= kMaxBatchBytes - parts_.size();
    Require(sound, ErrorCode::kDataLoss,
            "the shared-memory ring is damaged: an entry of kind {} with {} bytes follows {} bytes "
            "of a batch",
            static_cast<uint32_t>(entry.kind), entry.image.size(), parts_.size());
    // The buffer grows as parts arrive, because a size announced by the other process is not
    // trusted.
    parts_.insert(parts_.end(), entry.image.begin(), entry.image.end());
    whole_ = entry.kind == EntryKind::kBatch;
    if (whole_) return {entry.kind, parts_};
    entry = NextEntry(deadline);
  }
  return entry;
}

RingEntry RingReader::NextEntry(Deadline deadline) {
  Release();
  if (ended_) return {EntryKind::kEnd, {}};
  RingControl& control = memory_.control();
  const RingSignal::Outcome outcome =
      signal_.WaitUntil(control.reader_waits, deadline, [this] { return IsReady(); });
  // Throws before reading any entry that is still in the ring, because rows before a failure are
  // useless.
  ThrowWriterFailure();
  if (outcome == RingSignal::Outcome::kWoken && !closed_.load()) {
    return EntryAt(control.written.load());
  }
  Require(!closed_.load(), ErrorCode::kAborted, "the ring was closed while waiting for rows");
  Require(outcome == RingSignal::Outcome::kTimeout, ErrorCode::kUnavailable,
          "the feeding process exited before it sent all its rows");
  Throw(ErrorCode::kDeadlineExceeded,
        "deadline exceeded while waiting for rows; check whether the feeding process is stuck, "
        "or increase the timeout");
}

bool RingReader::IsReady() const {
  const RingControl& control = memory_.control();
  return ended_ || control.failed.load() != 0 || control.written.load() != position_;
}

// The other side may be faulty, so its values are validated before use.
RingEntry RingReader::EntryAt(uint64_t written) {
  EntryHeader header;
  // Copies the header, because the other process could change it between a check and its use.
  std::memcpy(&header, memory_.At(position_), sizeof(header));
  const bool known = header.kind >= static_cast<uint32_t>(EntryKind::kBatch) &&
                     header.kind <= static_cast<uint32_t>(EntryKind::kPart);
  const uint64_t in_flight =
      written - position_;  // wraps to a huge value if `written` is too small
  bool sound = known && in_flight <= memory_.most_in_flight() &&
               header.bytes <= memory_.capacity() - sizeof(header);
  const uint64_t entry_bytes = sizeof(header) + batch::AlignImage(header.bytes);
  sound = sound && entry_bytes <= memory_.capacity() &&
          memory_.After(position_, entry_bytes) <= written;
  Require(
      sound, ErrorCode::kDataLoss,
      "the shared-memory ring is damaged: an entry of kind {} claims {} bytes, but {} were written",
      header.kind, header.bytes, in_flight);
  const std::byte* image = memory_.At(position_) + sizeof(header);
  position_ = memory_.After(position_, entry_bytes);
  const auto kind = static_cast<EntryKind>(header.kind);
  ended_ = kind == EntryKind::kEnd;
  return {kind, {image, header.bytes}};
}

void RingReader::ThrowWriterFailure() const {
  const RingControl& control = memory_.control();
  if (control.failed.load() == 0) return;
  const size_t bytes = std::min<size_t>(control.failure_bytes, sizeof(control.failure_text));
  const auto code = std::min(control.failure_code, static_cast<uint32_t>(ErrorCode::kInternal));
  throw Error(static_cast<ErrorCode>(code), std::string(control.failure_text, bytes));
}

void RingReader::Release() {
  if (std::exchange(whole_, false)) parts_ = {};
  RingControl& control = memory_.control();
  if (control.released.load() == position_) return;
  control.released.store(position_);
  signal_.Notify(control.writer_waits);
}

void RingReader::Close() {
  closed_.store(true);
  // Set before the shutdown; otherwise the writer would consider this side dead.
  memory_.control().reader_done.store(1);
  signal_.Shutdown();
}

}  // namespace hearth::ring
