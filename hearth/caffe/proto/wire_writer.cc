#include "hearth/caffe/proto/wire_writer.h"

#include <bit>
#include <cstring>

namespace hearth::caffe {
namespace {

static_assert(std::endian::native == std::endian::little, "numbers are copied without conversion");

// Small values are buffered, so that storage is called once per 64 KiB. Larger arrays of weights
// are passed on without a copy.
constexpr size_t kBufferBytes = 64 << 10;

// The number of significant bits divided by 7, rounded up. A zero also needs one byte.
size_t VarintSize(uint64_t value) {
  return (static_cast<size_t>(std::bit_width(value | 1)) + 6) / 7;
}

// Negative numbers are sign-extended to 64 bits, as in protobuf.
template <typename T>
uint64_t VarintValue(T value) {
  return static_cast<uint64_t>(static_cast<int64_t>(value));
}

template <typename T>
size_t ValueSize(const T& value) {
  if constexpr (std::is_same_v<T, std::string>) {
    return VarintSize(value.size()) + value.size();
  } else if constexpr (std::is_floating_point_v<T>) {
    return sizeof(T);
  } else {
    return VarintSize(VarintValue(value));
  }
}

template <typename T>
size_t PackedSize(const std::vector<T>& values) {
  if constexpr (std::is_floating_point_v<T>) return values.size() * sizeof(T);
  size_t size = 0;
  for (const T& value : values) size += ValueSize<T>(value);
  return size;
}

template <typename T>
uint32_t ScalarWireType() {
  if (std::is_same_v<T, std::string>) return 2;
  if (std::is_same_v<T, float>) return 5;
  return std::is_same_v<T, double> ? 1 : 0;
}

size_t MessageSize(const Message& message);

// Each message is preceded by its size, which is computed again at every enclosing level. This is
// cheap, because nets nest only a few levels deep and the size of a float array follows from its
// length.
size_t FieldSize(const Message& message, const FieldDescriptor& field) {
  const size_t count = field.Count(message);
  if (count == 0) return 0;
  const size_t tag = VarintSize(static_cast<uint64_t>(field.number) << 3);
  size_t size = 0;
  if (field.type == FieldType::kMessage) {
    for (size_t i = 0; i < count; ++i) {
      const size_t inner = MessageSize(field.Submessage(message, i));
      size += tag + VarintSize(inner) + inner;
    }
    return size;
  }
  VisitScalarType(field.type, [&]<typename T>(std::type_identity<T>) {
    if (field.packed) {
      const size_t packed = PackedSize(field.Repeated<T>(message));
      size = tag + VarintSize(packed) + packed;
    } else if (field.repeated) {
      size = count * tag + PackedSize(field.Repeated<T>(message));
    } else {
      size = tag + ValueSize(field.Singular<T>(message));
    }
  });
  return size;
}

size_t MessageSize(const Message& message) {
  size_t size = 0;
  for (const FieldDescriptor& field : message.descriptor().fields)
    size += FieldSize(message, field);
  return size;
}

// Encodes messages. Like protobuf, writes fields in the order of their numbers, so equal messages
// have equal bytes.
class WireWriter {
 public:
  explicit WireWriter(const std::function<void(std::string_view)>& append) : append_(append) {}

  void WriteMessage(const Message& message) {
    for (const FieldDescriptor& field : message.descriptor().fields) WriteField(message, field);
  }
  void Flush() {
    if (!buffer_.empty()) append_(buffer_);
    buffer_.clear();
  }

 private:
  void Bytes(std::string_view bytes) {
    if (buffer_.size() + bytes.size() > kBufferBytes) Flush();
    if (bytes.size() > kBufferBytes) {
      append_(bytes);
    } else {
      buffer_ += bytes;
    }
  }
  void Varint(uint64_t value) {
    char bytes[10];
    size_t count = 0;
    for (; value >= 0x80; value >>= 7) bytes[count++] = static_cast<char>(value | 0x80);
    bytes[count++] = static_cast<char>(value);
    Bytes({bytes, count});
  }
  void Tag(const FieldDescriptor& field, uint32_t wire_type) {
    Varint(static_cast<uint64_t>(field.number) << 3 | wire_type);
  }

  template <typename T>
  void Value(const T& value) {
    if constexpr (std::is_same_v<T, std::string>) {
      Varint(value.size());
      Bytes(value);
    } else if constexpr (std::is_floating_point_v<T>) {
      Bytes({reinterpret_cast<const char*>(&value), sizeof value});
    } else {
      Varint(VarintValue(value));
    }
  }

  template <typename T>
  void Packed(const FieldDescriptor& field, const std::vector<T>& values) {
    if (values.empty()) return;
    Tag(field, 2);
    Varint(PackedSize(values));
    if constexpr (std::is_floating_point_v<T>) {
      Bytes({reinterpret_cast<const char*>(values.data()), values.size() * sizeof(T)});
    } else {
      for (const T& value : values) Value<T>(value);
    }
  }

  void WriteField(const Message& message, const FieldDescriptor& field);

  const std::function<void(std::string_view)>& append_;
  std::string buffer_;
};

void WireWriter::WriteField(const Message& message, const FieldDescriptor& field) {
  if (field.type == FieldType::kMessage) {
    for (size_t i = 0; i < field.Count(message); ++i) {
      const Message& inner = field.Submessage(message, i);
      Tag(field, 2);
      // The size precedes the bytes. Computing it first avoids a copy of the encoded message.
      Varint(MessageSize(inner));
      WriteMessage(inner);
    }
    return;
  }
  VisitScalarType(field.type, [&]<typename T>(std::type_identity<T>) {
    if (field.packed) {
      Packed<T>(field, field.Repeated<T>(message));
    } else if (field.repeated) {
      for (const T& value : field.Repeated<T>(message)) {
        Tag(field, ScalarWireType<T>());
        Value<T>(value);
      }
    } else if (message.Has(field.index)) {
      Tag(field, ScalarWireType<T>());
      Value<T>(field.Singular<T>(message));
    }
  });
}

}  // namespace

void WriteWire(const Message& message, const std::function<void(std::string_view)>& append) {
  WireWriter writer(append);
  writer.WriteMessage(message);
  writer.Flush();
}

std::string WireBytes(const Message& message) {
  std::string bytes;
  bytes.reserve(MessageSize(message));
  WriteWire(message, [&](std::string_view chunk) { bytes += chunk; });
  return bytes;
}

}  // namespace hearth::caffe
