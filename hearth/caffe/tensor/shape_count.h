// Counts the values of a shape whose dimensions may come from a file or a user.
#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <span>

namespace hearth::caffe {

// Caffe counts a blob's values in an int. The limit also applies to each dimension, so the product
// of two such numbers fits 64 bits.
inline constexpr int64_t kMaxBlobValues = std::numeric_limits<int32_t>::max();

// The product of the dimensions. Empty if a dimension is negative or the product exceeds the limit.
inline std::optional<int64_t> CountOf(std::span<const int64_t> shape) {
  int64_t count = 1;
  for (const int64_t dim : shape) {
    if (dim < 0 || dim > kMaxBlobValues) return std::nullopt;
    count *= dim;
    if (count > kMaxBlobValues) return std::nullopt;
  }
  return count;
}

}  // namespace hearth::caffe
