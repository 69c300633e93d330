// Counts the values of a shape whose dimensions come from a file or a user.
#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <span>

namespace hearth::caffe {

// As in Caffe, whose blobs count by int: dimensions are bounded by it too, so that products with
// another such number fit 64 bits.
inline constexpr int64_t kMaxBlobValues = std::numeric_limits<int32_t>::max();

// The product of the dimensions; empty if one is negative or the product is above the limit.
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
