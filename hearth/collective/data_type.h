// What a collective moves and how it combines.
#pragma once

#include <cstddef>
#include <cstdint>

namespace hearth::collective {

enum class DataType : uint8_t { kFloat32, kFloat64, kInt32, kInt64, kUint8 };
enum class Op : uint8_t { kSum, kMin, kMax };

constexpr size_t SizeOf(DataType type) {
  switch (type) {
    case DataType::kFloat32:
    case DataType::kInt32:
      return 4;
    case DataType::kFloat64:
    case DataType::kInt64:
      return 8;
    case DataType::kUint8:
      return 1;
  }
  return 0;
}

// Elements [begin, end).
struct Range {
  size_t begin = 0;
  size_t end = 0;
  size_t size() const { return end - begin; }
};

// Share `index` when `count` elements are cut into `parts` shares that differ by at most one
// element; the longer ones come first.
constexpr Range Part(size_t count, int parts, int index) {
  const size_t each = count / static_cast<size_t>(parts);
  const size_t longer = count % static_cast<size_t>(parts);
  const auto i = static_cast<size_t>(index);
  const size_t begin = i * each + (i < longer ? i : longer);
  return {begin, begin + each + (i < longer ? 1 : 0)};
}

}  // namespace hearth::collective
