// Messages on an authenticated connection: JSON in frames of a big-endian u32 length and
// that many bytes, at most 1 MiB. A longer message is split into frames that say if more follow.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>

namespace hearth::rendezvous {

using Json = nlohmann::json;

inline constexpr size_t kMaxFrameBytes = 1 << 20;
inline constexpr size_t kMaxMessageBytes = size_t{256} << 20;  // what a reader holds at most
// Json copies and prints by recursion, so deep nesting would overflow the stack.
inline constexpr int kDeepestNesting = 64;

std::string EncodeU32(uint32_t value);
uint32_t DecodeU32(std::string_view bytes);

// The frames of one message. Throws kInvalidArgument when it is too large. Text that is no UTF-8 is
// replaced, so that an error message with a strange path can still be sent.
std::string EncodeMessage(const Json& message);

// Cuts a stream of bytes into messages. One thread.
class FrameReader {
 public:
  void Append(std::string_view bytes) { buffer_.append(bytes); }
  // The next whole message. Throws kDataLoss for a length over a limit, as soon as it is known, and
  // for anything but a JSON object; the stream is unusable then.
  std::optional<Json> Next();
  // After Next gave none: how many bytes its next step needs at least. A caller that reads no more
  // than these leaves what follows a message in the socket.
  size_t missing() const;

 private:
  std::string buffer_;
  std::string parts_;  // of a message whose last frame has not come
};

}  // namespace hearth::rendezvous
