#include "hearth/caffe/kernels/int8_rows.h"

#include <algorithm>
#include <bit>
#include <cstring>

#include "hearth/base/for_each_cpu.h"

namespace hearth::caffe {
namespace {

constexpr int64_t kBoundLanes = 32;     // independent bounds, which can be vectorized
constexpr float kLargest = 127.f;       // largest magnitude in int8
constexpr float kNearlyZero = 1e-30f;   // the inverse of a smaller scale would be infinite
constexpr float kToWhole = 12582912.f;  // 1.5 * 2^23: adding it rounds to an integer

// The smallest and largest of a row's values and 0. `zero` is the sum of x * 0, which is NaN if a
// value is not finite.
struct Bounds {
  float least = 0, largest = 0, zero = 0;

  HEARTH_INLINE void Add(float x) {
    least = x < least ? x : least;
    largest = largest < x ? x : largest;
    zero += x * 0.f;  // stays NaN once x is not finite
  }
};

// Every comparison with NaN is false, so NaN does not affect the smallest and largest value. The
// sum of x * 0 becomes NaN for NaN and for infinity.
HEARTH_FOR_EACH_CPU void FindBounds(const float* x, int64_t count, Bounds* bounds) {
  float least[kBoundLanes] = {}, largest[kBoundLanes] = {}, zero[kBoundLanes] = {};
  int64_t i = 0;
  for (; i + kBoundLanes <= count; i += kBoundLanes) {
    for (int64_t lane = 0; lane < kBoundLanes; ++lane) {
      const float value = x[i + lane];
      least[lane] = value < least[lane] ? value : least[lane];
      largest[lane] = largest[lane] < value ? value : largest[lane];
      zero[lane] += value * 0.f;
    }
  }
  for (; i < count; ++i) bounds->Add(x[i]);
  for (int64_t lane = 0; lane < kBoundLanes; ++lane) {
    bounds->Add(least[lane] + zero[lane]);
    bounds->Add(largest[lane]);
  }
}

HEARTH_FOR_EACH_CPU void QuantizeEach(const float* x, int64_t count, float inverse, int8_t* q) {
#pragma GCC ivdep
  for (int64_t i = 0; i < count; ++i) {
    // The low bits contain the integer. A value half way between two integers is rounded to the
    // even one.
    q[i] = static_cast<int8_t>(std::bit_cast<int32_t>(x[i] * inverse + kToWhole));
  }
}

HEARTH_FOR_EACH_CPU void ScaleEach(float* y, int64_t rows, int64_t size, const float* scales,
                                   const float* bias) {
  for (int64_t row = 0; row < rows; ++row, y += size) {
#pragma GCC ivdep
    for (int64_t i = 0; i < size; ++i) y[i] = y[i] * scales[i] + bias[i];
  }
}

}  // namespace

Int8Range RangeOf(const float* x, int64_t count) {
  Bounds bounds;
  FindBounds(x, count, &bounds);
  const float magnitude = std::max(-bounds.least, bounds.largest);
  // Symmetric: there is no zero point, so 0 stays 0 and sums need no correction.
  const float scale = magnitude / kLargest + bounds.zero;
  return {scale < kNearlyZero ? 0.f : scale, bounds.least < 0};
}

void Quantize(const float* x, int64_t count, float scale, int8_t* q) {
  if (scale > 0) {
    QuantizeEach(x, count, 1.f / scale, q);
  } else {  // 0 or NaN
    std::memset(q, 0, static_cast<size_t>(count));
  }
}

void ScaleRows(float* y, int64_t rows, int64_t size, const float* scales, const float* bias) {
  ScaleEach(y, rows, size, scales, bias);
}

}  // namespace hearth::caffe
