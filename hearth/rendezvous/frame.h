// Control messages on an authenticated connection: a big-endian u32 length, then that many bytes of
// JSON, at most 1 MiB.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>

namespace hearth::rendezvous {

using Json = nlohmann::json;

inline constexpr size_t kMaxFrameBytes = 1 << 20;

std::string EncodeU32(uint32_t value);
uint32_t DecodeU32(std::string_view bytes);

// Throws kInvalidArgument when the message is too large. Text that is no UTF-8 is replaced, so that
// an error message with a strange path still travels.
std::string EncodeFrame(const Json& message);

// Cuts a stream of bytes into messages. One thread.
class FrameReader {
 public:
  void Append(std::string_view bytes) { buffer_.append(bytes); }
  // The next whole message. Throws kDataLoss for a length over the limit, as soon as it is known,
  // and for what is no JSON object; the stream is useless then.
  std::optional<Json> Next();

 private:
  std::string buffer_;
};

}  // namespace hearth::rendezvous
