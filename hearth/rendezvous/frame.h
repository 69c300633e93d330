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
// Limit of nested arrays and objects. Json copies and prints recursively, so deeper nesting could
// overflow the stack.
inline constexpr int kDeepestNesting = 64;

std::string EncodeU32(uint32_t value);
uint32_t DecodeU32(std::string_view bytes);

// Returns the frames of one message. Throws kInvalidArgument if the message is too large. Replaces
// invalid UTF-8, so that an error message with an undecodable path can still be sent.
std::string EncodeMessage(const Json& message);

// Splits a byte stream into messages. Not thread-safe.
class FrameReader {
 public:
  void Append(std::string_view bytes) { buffer_.append(bytes); }
  // Returns the next complete message. Throws kDataLoss for anything but a JSON object, and, before
  // the bytes have arrived, for a length over the limit; the stream is then unusable.
  std::optional<Json> Next();
  // Minimum number of bytes that Next() needs after it has returned nothing. Reading no more than
  // these leaves the bytes after the message in the socket.
  size_t missing() const;

 private:
  std::string buffer_;
  std::string parts_;  // earlier frames of an incomplete message
};

}  // namespace hearth::rendezvous
