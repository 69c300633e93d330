#include "hearth/ring/ring_writer.h"

#include <algorithm>
#include <cstring>
#include <new>
#include <utility>
#include <vector>

#include "hearth/batch/arrow_image.h"
#include "hearth/batch/chunks_image.h"

namespace hearth::ring {

using batch::ArrowImage;

RingWriter::RingWriter(RingEnd end, size_t block_bytes)
    : memory_(end.memory),
      signal_(std::move(end.signal)),
      // The window must have space for several blocks; otherwise writer and reader would alternate
      // instead of overlapping.
      block_bytes_(std::min(block_bytes, memory_.window() / 4 - sizeof(EntryHeader))),
      position_(memory_.Checked(memory_.control().written.load())) {}

bool RingWriter::WriteArrow(const ArrowSchema& schema, const ArrowArray& array, Deadline deadline) {
  const ArrowImage image(schema, array);
  for (int64_t row = 0; row < image.rows();) {
    const int64_t count = image.RowsWithin(row, block_bytes_);
    // Drops the remaining rows, because the reader needs no more. This is not an error.
    if (!WriteRows(image, row, count, deadline)) return false;
    row += count;
  }
  return true;
}

bool RingWriter::WriteRows(const ArrowImage& rows, int64_t begin, int64_t count,
                           Deadline deadline) {
  const size_t bytes = rows.ImageBytes(begin, count);
  if (sizeof(EntryHeader) + bytes > memory_.capacity()) {
    return WriteParts(rows, begin, count, deadline);
  }
  std::byte* to = Reserve(EntryKind::kBatch, bytes, deadline);
  if (to == nullptr) return false;
  // Writes directly into the ring, which is the only copy on the way to the reader.
  rows.Write(begin, count, {to, bytes});
  Publish(bytes);
  return true;
}

// Builds the image in a buffer and sends it in parts, because an image must be contiguous and this
// one is larger than the ring.
bool RingWriter::WriteParts(const ArrowImage& rows, int64_t begin, int64_t count,
                            Deadline deadline) {
  const size_t bytes = rows.ImageBytes(begin, count);
  Require(bytes <= kMaxBatchBytes, ErrorCode::kResourceExhausted,
          "row {} of a batch has {} bytes, the limit is {}; split it into several rows", begin,
          bytes, kMaxBatchBytes);
  std::vector<uint64_t> words(bytes / sizeof(uint64_t));  // image sizes are multiples of 8
  const std::span<std::byte> image = std::as_writable_bytes(std::span(words));
  rows.Write(begin, count, image);
  for (size_t at = 0; at < bytes;) {
    const size_t part = std::min(block_bytes_, bytes - at);
    const EntryKind kind = at + part < bytes ? EntryKind::kPart : EntryKind::kBatch;
    std::byte* to = Reserve(kind, part, deadline);
    if (to == nullptr) return false;
    std::memcpy(to, image.data() + at, part);
    Publish(part);
    at += part;
  }
  return true;
}

bool RingWriter::WriteChunks(const batch::ChunksImage& chunks, Deadline deadline) {
  const size_t bytes = chunks.bytes();
  Require(sizeof(EntryHeader) + bytes <= memory_.capacity(), ErrorCode::kResourceExhausted,
          "a batch of {} chunks has {} bytes, but the shared-memory ring holds only {}; send fewer "
          "at once",
          chunks.rows(), bytes, memory_.capacity());
  std::byte* to = Reserve(EntryKind::kBatch, bytes, deadline);
  if (to == nullptr) return false;
  chunks.Write({to, bytes});
  Publish(bytes);
  return true;
}

bool RingWriter::WriteFlush(Deadline deadline) { return WriteMark(EntryKind::kFlush, deadline); }

bool RingWriter::WriteEnd(Deadline deadline) { return WriteMark(EntryKind::kEnd, deadline); }

bool RingWriter::WriteMark(EntryKind kind, Deadline deadline) {
  if (Reserve(kind, 0, deadline) == nullptr) return false;
  Publish(0);
  return true;
}

std::byte* RingWriter::Reserve(EntryKind kind, uint64_t bytes, Deadline deadline) {
  RingControl& control = memory_.control();
  const uint64_t entry_bytes = sizeof(EntryHeader) + batch::AlignImage(bytes);
  const auto ready = [&] {
    return control.reader_done.load() != 0 ||
           memory_.HasSpace(position_, control.released.load(), entry_bytes);
  };
  RingSignal::Outcome outcome = RingSignal::Outcome::kPeerGone;
  // Checked even if there is space; otherwise a writer that never waits would not notice that its
  // reader has died.
  if (!signal_.PeerGone()) outcome = signal_.WaitUntil(control.writer_waits, deadline, ready);
  if (control.reader_done.load() != 0) return nullptr;
  if (outcome != RingSignal::Outcome::kWoken) ThrowStalled(entry_bytes, outcome);
  EntryHeader header = {};
  header.kind = static_cast<uint32_t>(kind);
  header.bytes = bytes;
  // The reader does not see the entry until Publish() advances `written`.
  std::memcpy(memory_.At(position_), &header, sizeof(header));
  return memory_.At(position_) + sizeof(header);
}

void RingWriter::Publish(uint64_t bytes) {
  position_ = memory_.After(position_, sizeof(EntryHeader) + batch::AlignImage(bytes));
  // Stored after all bytes of the entry, because the reader reads everything before `written`.
  memory_.control().written.store(position_);
  signal_.Notify(memory_.control().reader_waits);
}

void RingWriter::ThrowStalled(uint64_t bytes, RingSignal::Outcome outcome) const {
  Require(!closed_.load(), ErrorCode::kAborted, "the ring was closed while writing rows");
  Require(outcome == RingSignal::Outcome::kTimeout, ErrorCode::kUnavailable,
          "the reading process exited before it had all rows; see its error");
  Throw(ErrorCode::kDeadlineExceeded,
        "no space for {} bytes in a shared-memory ring of {} bytes: its reader took too few rows "
        "before the deadline; check whether the reading process is stuck, or increase the timeout",
        bytes, memory_.capacity());
}

void RingWriter::Fail(const Error& error) {
  RingControl& control = memory_.control();
  if (control.failed.load() != 0) return;  // only the first error is kept
  const std::string& text = error.message();
  size_t bytes = std::min(text.size(), sizeof(control.failure_text));
  // A text that is too long is cut before a UTF-8 character, not within it.
  while (bytes > 0 && bytes < text.size() && (text[bytes] & 0xC0) == 0x80) --bytes;
  std::memcpy(control.failure_text, text.data(), bytes);
  control.failure_bytes = static_cast<uint32_t>(bytes);
  control.failure_code = static_cast<uint32_t>(error.code());
  // Set last, because the reader then reads the code and the text.
  control.failed.store(1);
  signal_.Notify(control.reader_waits);
}

void RingWriter::Close() {
  closed_.store(true);
  signal_.Shutdown();
}

}  // namespace hearth::ring
