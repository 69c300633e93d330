// Element types and reduction operators of the collective.
#pragma once

#include <cstddef>
#include <cstdint>

namespace hearth::collective {

// A bool is a byte; any value other than 0 counts as true.
enum class DataType : uint8_t {
  kFloat32,
  kFloat64,
  kInt32,
  kInt64,
  kUint8,
  kFloat16,
  kBfloat16,
  kBool,
};

// NaN: kMin and kMax return NaN if any rank has one, so that no rank's failure is hidden and the
// order of the ranks does not matter (as IEEE 754-2019's minimum, torch.minimum and NumPy do).
// Integers: sums wrap around. A mean is the sum divided by the number of ranks, towards zero.
// Bools: kSum and kMax are "or", kMin is "and"; there is no mean.
enum class Op : uint8_t { kSum, kMin, kMax, kMean };

constexpr size_t SizeOf(DataType type) {
  switch (type) {
    case DataType::kFloat32:
    case DataType::kInt32:
      return 4;
    case DataType::kFloat64:
    case DataType::kInt64:
      return 8;
    case DataType::kFloat16:
    case DataType::kBfloat16:
      return 2;
    case DataType::kUint8:
    case DataType::kBool:
      return 1;
  }
  return 0;
}

constexpr const char* NameOf(DataType type) {
  switch (type) {
    case DataType::kFloat32:
      return "float32";
    case DataType::kFloat64:
      return "float64";
    case DataType::kInt32:
      return "int32";
    case DataType::kInt64:
      return "int64";
    case DataType::kUint8:
      return "uint8";
    case DataType::kFloat16:
      return "float16";
    case DataType::kBfloat16:
      return "bfloat16";
    case DataType::kBool:
      return "bool";
  }
  return "unknown type";
}

constexpr const char* NameOf(Op op) {
  switch (op) {
    case Op::kSum:
      return "sum";
    case Op::kMin:
      return "min";
    case Op::kMax:
      return "max";
    case Op::kMean:
      return "mean";
  }
  return "unknown op";
}

// Elements [begin, end).
struct Range {
  size_t begin = 0;
  size_t end = 0;
  size_t size() const { return end - begin; }
};

// Part `index` of `count` elements divided into `parts` parts that differ by at most one element;
// the longer parts come first.
constexpr Range Part(size_t count, int parts, int index) {
  const size_t each = count / static_cast<size_t>(parts);
  const size_t longer = count % static_cast<size_t>(parts);
  const auto i = static_cast<size_t>(index);
  const size_t begin = i * each + (i < longer ? i : longer);
  return {begin, begin + each + (i < longer ? 1 : 0)};
}

}  // namespace hearth::collective
