#include "hearth/caffe/kernels/vector_math.h"

#include <algorithm>
#include <cmath>

#include "hearth/caffe/kernels/vector_exp.h"
#include "hearth/caffe/tensor/parallel.h"

namespace hearth::caffe {
namespace {

constexpr int64_t kGrain = 4096;   // minimum number of values per thread
constexpr int64_t kFew = 16384;    // minimum per thread, for functions of one or two operations
constexpr int64_t kLanes = 16;     // independent sums, which can be vectorized
constexpr int64_t kColumns = 256;  // columns that a softmax over an inner axis computes together
// The smallest argument of VectorExp. For a smaller one, it would return e^-87 (1.6e-38) instead of
// a smaller number.
constexpr float kLeastExponent = -87.f;

// tanh x = 1 - 2 / (1 + e^2x) for |x| above 0.625, with the sign of x. For smaller |x|, this
// difference loses precision, so a series in x^2 is used. The formula and its limit are from
// Cephes's tanhf.
HEARTH_INLINE float VectorTanh(float x) {
  const float size = std::fabs(x), square = x * x;
  const float by_exponential = 1.f - 2.f / (1.f + VectorExp(2.f * size));
  float series = -0.0057086996f;
  series = series * square + 0.020651823f;
  series = series * square - 0.053747471f;
  series = series * square + 0.13331601f;
  series = series * square - 0.33333293f;
  const float by_series = x + x * square * series;
  return size > 0.625f ? std::copysign(by_exponential, x) : by_series;
}

HEARTH_FOR_EACH_CPU void TanhEach(const float* x, float* y, int64_t count) {
#pragma GCC ivdep
  for (int64_t i = 0; i < count; ++i) y[i] = VectorTanh(x[i]);
}

HEARTH_FOR_EACH_CPU void SigmoidEach(const float* x, float* y, int64_t count) {
#pragma GCC ivdep
  for (int64_t i = 0; i < count; ++i) y[i] = VectorSigmoid(x[i]);
}

HEARTH_FOR_EACH_CPU void RectifyEach(const float* x, float slope, float* y, int64_t count) {
  if (slope == 0) {
    // With the operands in this order, the comparison is false for NaN, so NaN stays NaN.
#pragma GCC ivdep
    for (int64_t i = 0; i < count; ++i) y[i] = 0.f > x[i] ? 0.f : x[i];
  } else {
#pragma GCC ivdep
    for (int64_t i = 0; i < count; ++i) y[i] = x[i] * (x[i] > 0 ? 1.f : slope);
  }
}

HEARTH_FOR_EACH_CPU void RectifyGradientEach(const float* x, const float* dy, float slope,
                                             float* dx, int64_t count) {
#pragma GCC ivdep
  for (int64_t i = 0; i < count; ++i) dx[i] = dy[i] * (x[i] > 0 ? 1.f : slope);
}

// Uses several sums, because a single one would be a chain of additions that the compiler must not
// reorder.
HEARTH_INLINE float SumOf(const float* values, int64_t count) {
  float lanes[kLanes] = {};
  int64_t i = 0;
  for (; i + kLanes <= count; i += kLanes) {
    for (int64_t lane = 0; lane < kLanes; ++lane) lanes[lane] += values[i + lane];
  }
  float sum = 0;
  for (; i < count; ++i) sum += values[i];
  for (const float lane : lanes) sum += lane;
  return sum;
}

HEARTH_INLINE float LargestOf(const float* values, int64_t count) {
  float lanes[kLanes];
  std::fill_n(lanes, kLanes, values[0]);
  int64_t i = 0;
  for (; i + kLanes <= count; i += kLanes) {
    for (int64_t lane = 0; lane < kLanes; ++lane) {
      lanes[lane] = lanes[lane] < values[i + lane] ? values[i + lane] : lanes[lane];
    }
  }
  float largest = values[0];
  for (; i < count; ++i) largest = std::max(largest, values[i]);
  for (const float lane : lanes) largest = std::max(largest, lane);
  return largest;
}

// Returns e^x for x up to 0, or 0 if the result would underflow, so that masked values contribute
// nothing.
HEARTH_INLINE float ExpBelowZero(float x) { return x < kLeastExponent ? 0.f : VectorExp(x); }

// y_i = e^(x_i - max) / sum of e^(x_j - max). Subtracting the largest value keeps e^x finite and
// does not change the quotient.
HEARTH_FOR_EACH_CPU void SoftmaxRows(const float* x, float* y, int64_t rows, int64_t size) {
  for (int64_t row = 0; row < rows; ++row, x += size, y += size) {
    const float largest = LargestOf(x, size);
#pragma GCC ivdep
    for (int64_t i = 0; i < size; ++i) y[i] = ExpBelowZero(x[i] - largest);
    const float factor = 1.f / SumOf(y, size);
    for (int64_t i = 0; i < size; ++i) y[i] *= factor;
  }
}

// Computes `count` columns of a matrix whose rows are `inner` values apart. The loops run along the
// rows, whose values are adjacent. The number of columns is limited so that their maxima and sums
// (1 KB each) fit in the L1 cache.
HEARTH_FOR_EACH_CPU void SoftmaxColumns(const float* x, float* y, int64_t size, int64_t inner,
                                        int64_t count) {
  float largest[kColumns], sum[kColumns] = {};
  std::copy_n(x, count, largest);
  for (int64_t c = 1; c < size; ++c) {
    for (int64_t i = 0; i < count; ++i) {
      largest[i] = largest[i] < x[c * inner + i] ? x[c * inner + i] : largest[i];
    }
  }
  for (int64_t c = 0; c < size; ++c) {
#pragma GCC ivdep
    for (int64_t i = 0; i < count; ++i) {
      y[c * inner + i] = ExpBelowZero(x[c * inner + i] - largest[i]);
      sum[i] += y[c * inner + i];
    }
  }
  for (int64_t c = 0; c < size; ++c) {
#pragma GCC ivdep
    for (int64_t i = 0; i < count; ++i) y[c * inner + i] /= sum[i];
  }
}

// dx_i = y_i * (dy_i - sum of y_j * dy_j). dx may be dy, because the sum is complete before the
// first value is written.
HEARTH_FOR_EACH_CPU void GradientRows(const float* y, const float* dy, float* dx, int64_t rows,
                                      int64_t size) {
  for (int64_t row = 0; row < rows; ++row, y += size, dy += size, dx += size) {
    float lanes[kLanes] = {}, sum = 0;
    int64_t i = 0;
    for (; i + kLanes <= size; i += kLanes) {
      for (int64_t lane = 0; lane < kLanes; ++lane) lanes[lane] += y[i + lane] * dy[i + lane];
    }
    for (; i < size; ++i) sum += y[i] * dy[i];
    for (const float lane : lanes) sum += lane;
#pragma GCC ivdep
    for (int64_t j = 0; j < size; ++j) dx[j] = y[j] * (dy[j] - sum);
  }
}

HEARTH_FOR_EACH_CPU void GradientColumns(const float* y, const float* dy, float* dx, int64_t size,
                                         int64_t inner, int64_t count) {
  float sum[kColumns] = {};
  for (int64_t c = 0; c < size; ++c) {
    for (int64_t i = 0; i < count; ++i) sum[i] += y[c * inner + i] * dy[c * inner + i];
  }
  for (int64_t c = 0; c < size; ++c) {
#pragma GCC ivdep
    for (int64_t i = 0; i < count; ++i) {
      dx[c * inner + i] = y[c * inner + i] * (dy[c * inner + i] - sum[i]);
    }
  }
}

// Calls rows(offset of the first value, number of rows) if `inner` is 1, else columns(offset,
// number of columns).
template <typename Rows, typename Columns>
void ForEachPart(const SoftmaxShape& shape, Rows rows, Columns columns) {
  const int64_t values = shape.size * shape.inner;
  if (values == 0) return;
  ParallelFor(0, shape.outer, kGrain / values + 1, [&](int64_t begin, int64_t end) {
    if (shape.inner == 1) return rows(begin * values, end - begin);
    for (int64_t row = begin; row < end; ++row) {
      for (int64_t i = 0; i < shape.inner; i += kColumns) {
        columns(row * values + i, std::min(kColumns, shape.inner - i));
      }
    }
  });
}

}  // namespace

void TanhOf(const float* x, float* y, int64_t count) {
  ParallelFor(0, count, kGrain,
              [&](int64_t begin, int64_t end) { TanhEach(x + begin, y + begin, end - begin); });
}

void SigmoidOf(const float* x, float* y, int64_t count) {
  ParallelFor(0, count, kGrain,
              [&](int64_t begin, int64_t end) { SigmoidEach(x + begin, y + begin, end - begin); });
}

void RectifierOf(const float* x, float slope, float* y, int64_t count) {
  ParallelFor(0, count, kFew, [&](int64_t begin, int64_t end) {
    RectifyEach(x + begin, slope, y + begin, end - begin);
  });
}

void RectifierGradient(const float* x, const float* dy, float slope, float* dx, int64_t count) {
  ParallelFor(0, count, kFew, [&](int64_t begin, int64_t end) {
    RectifyGradientEach(x + begin, dy + begin, slope, dx + begin, end - begin);
  });
}

void Softmax(const SoftmaxShape& shape, const float* x, float* y) {
  ForEachPart(
      shape, [&](int64_t at, int64_t rows) { SoftmaxRows(x + at, y + at, rows, shape.size); },
      [&](int64_t at, int64_t count) {
        SoftmaxColumns(x + at, y + at, shape.size, shape.inner, count);
      });
}

void SoftmaxGradient(const SoftmaxShape& shape, const float* y, const float* dy, float* dx) {
  ForEachPart(
      shape,
      [&](int64_t at, int64_t rows) { GradientRows(y + at, dy + at, dx + at, rows, shape.size); },
      [&](int64_t at, int64_t count) {
        GradientColumns(y + at, dy + at, dx + at, shape.size, shape.inner, count);
      });
}

}  // namespace hearth::caffe
