#include "hearth/batch/tf_example_encode.h"

#include <algorithm>
#include <cstring>
#include <string>

#include "hearth/base/error.h"
#include "hearth/formats/tf_example.h"
#include "hearth/formats/wire.h"

namespace hearth::batch {
namespace {

using formats::FeatureKind;
using formats::PutHead;

bool IsFloat(ColumnType type) {
  return type == ColumnType::kFloat32 || type == ColumnType::kFloat64;
}

FeatureKind KindOf(const ColumnView& column, const ColumnView& values) {
  const ColumnType type = values.type();
  if (IsFloat(type)) return FeatureKind::kFloat;
  if (IsBytes(type)) return FeatureKind::kBytes;
  if (type == ColumnType::kBool || NumberWidth(type) > 0) return FeatureKind::kInt64;
  Throw(ErrorCode::kInvalidArgument,
        "column '{}' has the type {}, which tf.train.Example does not support: use numbers, bools, "
        "strings, binaries or arrays of them",
        column.name(), ColumnTypeName(type));
}

int64_t ListOffset(const ColumnView& column, int64_t row) {
  if (column.type() == ColumnType::kFixedSizeList) return row * column.list_size();
  if (OffsetWidth(column.type()) == 8) {
    return static_cast<const int64_t*>(column.buffers().offsets)[row];
  }
  return static_cast<const int32_t*>(column.buffers().offsets)[row];
}

// Encodes one column's entries of the examples' feature maps. Example { features = 1: Features {
// feature = 1: map entries { key = 1, value = 2: Feature } } }, and a Feature has one of bytes_list
// = 1, float_list = 2, int64_list = 3, each with value = 1. Each nested message is prefixed with
// its length, so a row's payload is encoded first, and the lengths of the enclosing messages are
// computed from it.
class FeatureEncoder {
 public:
  explicit FeatureEncoder(const ColumnView& column)
      : column_(column),
        values_(IsList(column.type()) ? column.children().front() : column),
        kind_(KindOf(column, values_)) {
    PutHead(1, column.name().size(), &key_);
    key_.append(column.name());
  }

  // Appends the row's entry; no entry for null.
  void Append(int64_t row, std::string* features) {
    if (column_.IsNull(row)) return;
    const bool list = IsList(column_.type());
    Encode(list ? ListOffset(column_, row) : row, list ? ListOffset(column_, row + 1) : row + 1);
    const auto kind = static_cast<uint32_t>(kind_);
    const size_t feature_bytes = 1 + formats::VarintBytes(payload_.size()) + payload_.size();
    PutHead(1, key_.size() + 1 + formats::VarintBytes(feature_bytes) + feature_bytes, features);
    features->append(key_);
    PutHead(2, feature_bytes, features);
    PutHead(kind, payload_.size(), features);
    features->append(payload_);
  }

 private:
  // Sets payload_ to the FloatList, Int64List or BytesList of the values [begin, end).
  void Encode(int64_t begin, int64_t end) {
    payload_.clear();
    for (int64_t i = begin; i < end; ++i) {
      Require(!values_.IsNull(i), ErrorCode::kInvalidArgument,
              "column '{}' has a null within an array, which tf.train.Example does not support",
              column_.name());
    }
    if (kind_ == FeatureKind::kBytes) {
      for (int64_t i = begin; i < end; ++i) {
        const std::string_view bytes = values_.Bytes(i);
        PutHead(1, bytes.size(), &payload_);
        payload_.append(bytes);
      }
    } else if (begin < end) {
      kind_ == FeatureKind::kFloat ? EncodeFloats(begin, end) : EncodeInts(begin, end);
      PutHead(1, packed_.size(), &payload_);
      payload_.append(packed_);
    }
  }

  // Packed floats: four bytes each, little-endian, without tags.
  void EncodeFloats(int64_t begin, int64_t end) {
    const auto count = static_cast<size_t>(end - begin);
    packed_.resize(count * sizeof(float));
    if (values_.type() == ColumnType::kFloat32) {
      const auto* floats = reinterpret_cast<const float*>(values_.buffers().data) + begin;
      std::memcpy(packed_.data(), floats, packed_.size());
      return;
    }
    for (size_t i = 0; i < count; ++i) {
      const auto value = static_cast<float>(values_.AsDouble(begin + static_cast<int64_t>(i)));
      std::memcpy(packed_.data() + i * sizeof(float), &value, sizeof(value));
    }
  }

  void EncodeInts(int64_t begin, int64_t end) {
    packed_.clear();
    for (int64_t i = begin; i < end; ++i) {
      // A negative number takes ten bytes, like an int64 field of protobuf.
      formats::PutVarint(static_cast<uint64_t>(values_.AsInt64(i)), &packed_);
    }
  }

  const ColumnView& column_;
  const ColumnView& values_;
  FeatureKind kind_;
  std::string key_;
  std::string payload_;
  std::string packed_;
};

}  // namespace

void EncodeExamples(const BatchView& rows, const std::function<void(std::string_view)>& put) {
  std::vector<FeatureEncoder> encoders;
  encoders.reserve(rows.columns().size());
  for (const ColumnView& column : rows.columns()) encoders.emplace_back(column);
  std::string features;
  std::string example;
  for (int64_t row = 0; row < rows.rows(); ++row) {
    features.clear();
    for (FeatureEncoder& encoder : encoders) encoder.Append(row, &features);
    example.clear();
    PutHead(1, features.size(), &example);
    example.append(features);
    put(example);
  }
}

}  // namespace hearth::batch
