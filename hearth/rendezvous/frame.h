// Framing of messages on an authenticated connection: a big-endian u32 length and that many bytes
// of JSON, at most 1 MiB. A longer message is split into frames with a continuation flag.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>

namespace hearth::rendezvous {

using Json = nlohmann::json;

inline constexpr size_t kMaxFrameBytes = 1 << 20;
inline constexpr size_t kMaxMessageBytes = size_t{256} << 20;  // limit of a reader's memory
// Json copies and prints recursively, so deep nesting would overflow the stack.
inline constexpr int kDeepestNesting = 64;

std::string EncodeU32(uint32_t value);
uint32_t DecodeU32(std::string_view bytes);

// The frames of one message. Throws kInvalidArgument if it is too large. Invalid UTF-8 is replaced,
// so that an error message with an undecodable path can still be sent.
std::string EncodeMessage(const Json& message);

// Splits a byte stream into messages. One thread.
class FrameReader {
 public:
  void Append(std::string_view bytes) { buffer_.append(bytes); }
  // The next complete message. Throws kDataLoss for a length over the limit, before the bytes have
  // arrived, and for anything but a JSON object; the stream is then unusable.
  std::optional<Json> Next();
  // After Next has returned nothing: the minimum number of bytes that it needs. Read no more than
  // these to leave in the socket what follows the message.
  size_t missing() const;

 private:
  std::string buffer_;
  std::string parts_;  // of a message whose last frame has not arrived
};

}  // namespace hearth::rendezvous
