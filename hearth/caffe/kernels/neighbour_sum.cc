#include "hearth/caffe/kernels/neighbour_sum.h"

#include <algorithm>

#include "hearth/base/for_each_cpu.h"

namespace hearth::caffe {
namespace {

// sums[i] = values[i - reach] + ... + values[i + reach], where i counts rows of `inner` values.
// Each row is summed from scratch, because a running sum would accumulate rounding errors. The
// inner loop is a plain vector addition.
HEARTH_INLINE void SumNeighbourRows(const float* values, float* sums, int64_t rows, int64_t inner,
                                    int64_t reach) {
  for (int64_t row = 0; row < rows; ++row) {
    float* to = sums + row * inner;
    const int64_t first = std::max<int64_t>(0, row - reach);
    const int64_t last = std::min(rows - 1, row + reach);
    std::copy_n(values + first * inner, inner, to);
    for (int64_t other = first + 1; other <= last; ++other) {
      const float* from = values + other * inner;
#pragma GCC ivdep
      for (int64_t i = 0; i < inner; ++i) to[i] += from[i];
    }
  }
}

}  // namespace

HEARTH_FOR_EACH_CPU void SumAcrossChannels(const ImageShape& shape, int64_t size,
                                           const float* values, float* sums) {
  SumNeighbourRows(values, sums, shape.channels, shape.height * shape.width, size / 2);
}

HEARTH_FOR_EACH_CPU void SumWithinChannels(const ImageShape& shape, int64_t size,
                                           const float* values, float* scratch, float* sums) {
  // The sum over a square is separable: first along each row, into `scratch`, then across the rows.
  // This takes 2 * size additions per value instead of size^2.
  const int64_t plane = shape.height * shape.width;
  for (int64_t c = 0; c < shape.channels; ++c) {
    for (int64_t y = 0; y < shape.height; ++y) {
      const int64_t row = y * shape.width;
      SumNeighbourRows(values + c * plane + row, scratch + row, shape.width, 1, size / 2);
    }
    SumNeighbourRows(scratch, sums + c * plane, shape.height, shape.width, size / 2);
  }
}

}  // namespace hearth::caffe
