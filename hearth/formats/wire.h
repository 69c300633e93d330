// Protobuf wire format, the subset used by tf.train.Example.
#pragma once

#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>

#include "hearth/base/error.h"

namespace hearth::formats {

// Iterates over the fields of one message, never reading past it. Throws kDataLoss.
class WireReader {
 public:
  enum Type : uint32_t { kVarint = 0, kFixed64 = 1, kBytes = 2, kFixed32 = 5 };

  explicit WireReader(std::string_view bytes) : at_(bytes.data()), end_(at_ + bytes.size()) {}

  bool done() const { return at_ == end_; }
  size_t left() const { return static_cast<size_t>(end_ - at_); }

  // Reads the next field's tag.
  void NextField() {
    const uint64_t tag = Varint();
    field = static_cast<uint32_t>(tag >> 3);
    type = static_cast<uint32_t>(tag & 7);
  }
  uint64_t Varint() {
    if (at_ != end_ && static_cast<uint8_t>(*at_) < 0x80) return static_cast<uint8_t>(*at_++);
    return LongVarint();
  }
  std::string_view Bytes() {
    const uint64_t size = Varint();
    Need(size);
    const std::string_view bytes(at_, static_cast<size_t>(size));
    at_ += size;
    return bytes;
  }
  float Float() { return Fixed<float>(); }
  double Double() { return Fixed<double>(); }
  void Skip() {
    if (type == kVarint) {
      Varint();
    } else if (type == kBytes) {
      Bytes();
    } else {
      Require(type == kFixed64 || type == kFixed32, ErrorCode::kDataLoss,
              "an example is malformed: a field has the unknown wire type {}", type);
      const size_t size = type == kFixed64 ? 8 : 4;
      Need(size);
      at_ += size;
    }
  }

  uint32_t field = 0;
  uint32_t type = 0;

 private:
  template <typename T>
  T Fixed() {
    Need(sizeof(T));
    T value;
    std::memcpy(&value, at_, sizeof(value));
    at_ += sizeof(value);
    return value;
  }
  uint64_t LongVarint() {
    uint64_t value = 0;
    for (int shift = 0; shift < 64; shift += 7) {
      Need(1);
      const auto byte = static_cast<uint8_t>(*at_++);
      value |= uint64_t{byte & 0x7fu} << shift;
      if (byte < 0x80) return value;
    }
    Throw(ErrorCode::kDataLoss, "an example is malformed: a number has more than ten bytes");
  }
  void Need(uint64_t count) const {
    Require(count <= left(), ErrorCode::kDataLoss,
            "an example is malformed: a field is longer than its message");
  }

  const char* at_;
  const char* end_;
};

inline size_t VarintBytes(uint64_t value) {
  size_t bytes = 1;
  for (; value >= 0x80; value >>= 7) ++bytes;
  return bytes;
}

inline void PutVarint(uint64_t value, std::string* out) {
  for (; value >= 0x80; value >>= 7) out->push_back(static_cast<char>(value | 0x80));
  out->push_back(static_cast<char>(value));
}

// Writes the tag of a length-delimited field, and the length.
inline void PutHead(uint32_t field, size_t bytes, std::string* out) {
  PutVarint(field << 3 | WireReader::kBytes, out);
  PutVarint(bytes, out);
}

}  // namespace hearth::formats
