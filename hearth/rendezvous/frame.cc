#include "hearth/rendezvous/frame.h"

#include <algorithm>
#include <utility>

#include "hearth/base/error.h"

namespace hearth::rendezvous {

namespace {

constexpr size_t kLengthBytes = 4;
// Flag in a frame's length: the message continues in the next frame. A length is at most 1 MiB, so
// the upper bits are unused.
constexpr uint32_t kMoreFollows = 1u << 31;

}  // namespace

std::string EncodeU32(uint32_t value) {
  std::string bytes;
  for (int shift = 24; shift >= 0; shift -= 8) bytes += static_cast<char>(value >> shift & 255);
  return bytes;
}

uint32_t DecodeU32(std::string_view bytes) {
  uint32_t value = 0;
  for (size_t i = 0; i < 4; ++i) value = value << 8 | static_cast<unsigned char>(bytes[i]);
  return value;
}

std::string EncodeMessage(const Json& message) {
  const std::string text = message.dump(-1, ' ', false, Json::error_handler_t::replace);
  Require(text.size() <= kMaxMessageBytes, ErrorCode::kInvalidArgument,
          "a control message of {} bytes is over the limit of {}; send less at once", text.size(),
          kMaxMessageBytes);
  std::string frames;
  size_t begin = 0;
  for (; text.size() - begin > kMaxFrameBytes; begin += kMaxFrameBytes) {
    frames += EncodeU32(kMoreFollows | static_cast<uint32_t>(kMaxFrameBytes));
    frames.append(text, begin, kMaxFrameBytes);
  }
  frames += EncodeU32(static_cast<uint32_t>(text.size() - begin));
  return frames.append(text, begin);
}

namespace {

// Returns the maximum nesting of arrays and objects. Scans the text, which is much faster than a
// callback of the parser. For invalid JSON, the result is right up to the first syntax error, where
// the parser stops.
int DeepestNesting(std::string_view text) {
  int open = 0;
  int deepest = 0;
  bool in_string = false;
  for (size_t at = 0; at < text.size(); ++at) {
    const char c = text[at];
    if (in_string) {
      // Skips the character after a backslash, because an escaped quote does not end the string.
      at += c == '\\';
      in_string = c != '"';
    } else if (c == '"') {
      in_string = true;
    } else if (c == '[' || c == '{') {
      deepest = std::max(deepest, ++open);
    } else if (c == ']' || c == '}') {
      --open;
    }
  }
  return deepest;
}

Json ParseShallow(std::string_view text) {
  Require(DeepestNesting(text) <= kDeepestNesting, ErrorCode::kDataLoss,
          "a control message is nested deeper than {}", kDeepestNesting);
  return Json::parse(text, nullptr, /*allow_exceptions=*/false);
}

}  // namespace

size_t FrameReader::missing() const {
  if (buffer_.size() < kLengthBytes) return kLengthBytes - buffer_.size();
  return kLengthBytes + (DecodeU32(buffer_) & ~kMoreFollows) - buffer_.size();
}

std::optional<Json> FrameReader::Next() {
  while (buffer_.size() >= kLengthBytes) {
    const uint32_t length = DecodeU32(buffer_);
    const bool more = (length & kMoreFollows) != 0;
    const size_t size = length & ~kMoreFollows;
    Require(size <= kMaxFrameBytes, ErrorCode::kDataLoss,
            "a control frame has a length of {} bytes, over the limit of {}", size, kMaxFrameBytes);
    // Only a full frame may have the continuation flag. Otherwise a client could send endless small
    // frames, which cost it little but cost this process much.
    Require(!more || size == kMaxFrameBytes, ErrorCode::kDataLoss,
            "a control frame of {} bytes has the continuation flag, but is not full", size);
    Require(parts_.size() + size <= kMaxMessageBytes, ErrorCode::kDataLoss,
            "a control message has more than {} bytes", kMaxMessageBytes);
    if (buffer_.size() < kLengthBytes + size) return std::nullopt;
    parts_.append(buffer_, kLengthBytes, size);
    buffer_.erase(0, kLengthBytes + size);
    if (more) continue;
    const std::string text = std::exchange(parts_, {});
    Json message = ParseShallow(text);
    Require(message.is_object(), ErrorCode::kDataLoss,
            "a control message of {} bytes is not a JSON object", text.size());
    return message;
  }
  return std::nullopt;
}

}  // namespace hearth::rendezvous
