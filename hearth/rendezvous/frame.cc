#include "hearth/rendezvous/frame.h"

#include "hearth/base/error.h"

namespace hearth::rendezvous {

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

std::string EncodeFrame(const Json& message) {
  const std::string text = message.dump(-1, ' ', false, Json::error_handler_t::replace);
  Require(text.size() <= kMaxFrameBytes, ErrorCode::kInvalidArgument,
          "a control message of {} bytes is over the limit of {}; send less at once", text.size(),
          kMaxFrameBytes);
  return EncodeU32(static_cast<uint32_t>(text.size())) + text;
}

namespace {

// Json copies and prints by recursion, so deep nesting would overflow the stack.
constexpr int kDeepestNesting = 64;

Json ParseShallow(std::string_view text) {
  const auto check = [](int depth, Json::parse_event_t, Json&) {
    Require(depth <= kDeepestNesting, ErrorCode::kDataLoss,
            "a control message is nested deeper than {}", kDeepestNesting);
    return true;
  };
  return Json::parse(text, check, /*allow_exceptions=*/false);
}

}  // namespace

std::optional<Json> FrameReader::Next() {
  if (buffer_.size() < 4) return std::nullopt;
  const size_t size = DecodeU32(buffer_);
  Require(size <= kMaxFrameBytes, ErrorCode::kDataLoss,
          "a control message claims {} bytes, over the limit of {}", size, kMaxFrameBytes);
  if (buffer_.size() < 4 + size) return std::nullopt;
  Json message = ParseShallow(std::string_view(buffer_).substr(4, size));
  Require(message.is_object(), ErrorCode::kDataLoss,
          "a control message of {} bytes is no JSON object", size);
  buffer_.erase(0, 4 + size);
  return message;
}

}  // namespace hearth::rendezvous
