#include "hearth/caffe/proto/wire_reader.h"

#include <bit>
#include <cstring>

#include "hearth/base/error.h"

namespace hearth::caffe {
namespace {

static_assert(std::endian::native == std::endian::little, "numbers are copied without conversion");

// protobuf's encoding: a message is a sequence of fields. Each field is a varint (number << 3 |
// wire type) and a value. The wire type determines the length of the value, so unknown fields can
// be skipped.
enum WireType : uint32_t {
  kVarint = 0,
  kFixed64 = 1,
  kLength = 2,
  kStartGroup = 3,
  kEndGroup = 4,
  kFixed32 = 5
};

// Limits the nesting of unknown groups, which is the only nesting in the formats that has no limit.
constexpr int kDeepestGroup = 64;

WireType WireTypeOf(FieldType type) {
  switch (type) {
    case FieldType::kFloat:
      return kFixed32;
    case FieldType::kDouble:
      return kFixed64;
    case FieldType::kString:
    case FieldType::kBytes:
    case FieldType::kMessage:
      return kLength;
    default:
      return kVarint;
  }
}

class WireReader {
 public:
  WireReader(std::string_view bytes, const std::string& file) : bytes_(bytes), file_(file) {}

  void ReadMessage(Message* message, size_t end);

 private:
  [[noreturn]] void Fail(std::string_view what) const {
    Throw(ErrorCode::kDataLoss, "{}: damaged at byte {} of {}: {} in {}", file_, at_, bytes_.size(),
          what, path_.empty() ? "the file" : path_);
  }
  // `end - at_` cannot wrap around, because `at_` never exceeds `end`. The sum `at_ + count` could,
  // if `count` is damaged.
  void Need(size_t count, size_t end) const {
    if (count > end - at_) Fail("unexpected end of data");
  }
  uint64_t Varint(size_t end);
  size_t Length(size_t end);
  void ReadField(Message* message, const FieldDescriptor& field, uint32_t wire_type, size_t end);
  void ReadPacked(Message* message, const FieldDescriptor& field, size_t end);
  void Skip(uint32_t wire_type, size_t end, int depth);
  template <typename T>
  T ReadScalar(const FieldDescriptor& field, size_t end);

  std::string_view bytes_;
  const std::string& file_;
  size_t at_ = 0;
  std::string path_;  // of the field being read, such as "layer.blobs.data"
};

// Seven bits per byte, lowest bits first. All bytes but the last have their high bit set. 64 bits
// need ten bytes.
uint64_t WireReader::Varint(size_t end) {
  uint64_t value = 0;
  for (int shift = 0; shift < 64; shift += 7) {
    Need(1, end);
    const auto byte = static_cast<uint8_t>(bytes_[at_++]);
    value |= uint64_t{byte & 0x7fu} << shift;
    if (byte < 0x80) return value;
  }
  Fail("a number is longer than ten bytes");
}

// Checked before memory is allocated, so a damaged length cannot request more bytes than the file
// has.
size_t WireReader::Length(size_t end) {
  const uint64_t length = Varint(end);
  if (length > end - at_) Fail("unexpected end of data");
  return static_cast<size_t>(length);
}

// Fields may be in any order. As in protobuf, a second value of a singular field replaces the
// first, and a second nested message is merged into the first.
void WireReader::ReadMessage(Message* message, size_t end) {
  const MessageDescriptor& descriptor = message->descriptor();
  while (at_ < end) {
    const uint64_t tag = Varint(end);
    const auto wire_type = static_cast<uint32_t>(tag & 7);
    const uint64_t number = tag >> 3;
    if (number == 0 || number > 0x1fffffff) Fail("found an impossible field number");
    const FieldDescriptor* field = descriptor.Find(static_cast<int32_t>(number));
    if (field == nullptr) {
      Skip(wire_type, end, 0);
      continue;
    }
    // The path is needed only for an error, but a model has many fields. So it is one string that
    // is extended and truncated.
    const size_t length = path_.size();
    path_ += path_.empty() ? "" : ".";
    path_ += field->name;
    ReadField(message, *field, wire_type, end);
    path_.resize(length);
  }
}

void WireReader::ReadField(Message* message, const FieldDescriptor& field, uint32_t wire_type,
                           size_t end) {
  const WireType expected = WireTypeOf(field.type);
  // Readers must accept packed and unpacked numbers, because writers may use either, whatever the
  // schema says.
  if (wire_type == kLength && expected != kLength && field.repeated) {
    ReadPacked(message, field, end);
  } else if (wire_type != expected) {
    Fail("found a value of the wrong type");
  } else if (field.type == FieldType::kMessage) {
    const size_t length = Length(end);
    ReadMessage(&field.AddSubmessage(*message), at_ + length);
  } else {
    VisitScalarType(field.type, [&]<typename T>(std::type_identity<T>) {
      T value = ReadScalar<T>(field, end);
      if constexpr (std::is_same_v<T, int32_t>) {
        // As in protobuf, an unknown enum value is treated as an unknown field.
        if (field.enumeration && !field.enumeration->Find(value)) return;
      }
      PutValue<T>(*message, field, std::move(value));
    });
  }
}

template <typename T>
T WireReader::ReadScalar(const FieldDescriptor& field, size_t end) {
  if constexpr (std::is_same_v<T, std::string>) {
    const size_t length = Length(end);
    at_ += length;
    return std::string(bytes_.substr(at_ - length, length));
  } else if constexpr (std::is_floating_point_v<T>) {
    Need(sizeof(T), end);
    T value;
    std::memcpy(&value, bytes_.data() + at_, sizeof value);
    at_ += sizeof value;
    return value;
  } else {
    // As in protobuf, the high bits are dropped: a negative int32 is encoded as a 64-bit number.
    return static_cast<T>(Varint(end));
  }
}

void WireReader::ReadPacked(Message* message, const FieldDescriptor& field, size_t end) {
  const size_t length = Length(end);
  const size_t stop = at_ + length;
  VisitScalarType(field.type, [&]<typename T>(std::type_identity<T>) {
    // Values are appended, because a packed field may be split into several parts.
    auto& values = field.Repeated<T>(*message);
    if constexpr (std::is_floating_point_v<T>) {
      // Weights are packed floats: they are copied once, directly to their destination.
      if (length % sizeof(T) != 0) Fail("the length is not a multiple of the packed numbers' size");
      const size_t before = values.size();
      values.resize(before + length / sizeof(T));
      if (length > 0) std::memcpy(values.data() + before, bytes_.data() + at_, length);
      at_ = stop;
    } else {
      while (at_ < stop) values.push_back(ReadScalar<T>(field, stop));
    }
  });
}

// Skips the fields that other versions and forks of Caffe have added.
void WireReader::Skip(uint32_t wire_type, size_t end, int depth) {
  switch (wire_type) {
    case kVarint:
      Varint(end);
      return;
    case kFixed64:
      Need(8, end);
      at_ += 8;
      return;
    case kFixed32:
      Need(4, end);
      at_ += 4;
      return;
    case kLength: {
      const size_t length = Length(end);
      at_ += length;
      return;
    }
    case kStartGroup:
      if (depth >= kDeepestGroup) Fail("groups are nested too deeply");
      for (;;) {
        const auto inner = static_cast<uint32_t>(Varint(end) & 7);
        if (inner == kEndGroup) return;
        Skip(inner, end, depth + 1);
      }
    default:
      Fail("found a field of unknown wire type");
  }
}

}  // namespace

void ParseWire(std::string_view bytes, const std::string& file, Message* message) {
  WireReader(bytes, file).ReadMessage(message, bytes.size());
}

}  // namespace hearth::caffe
