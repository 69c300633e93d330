// Conversion between float32 and int8, with equal bits on all three instruction sets for which it
// is compiled. Single-threaded.
#pragma once

#include <cstdint>

namespace hearth::caffe {

// The int8 representation of a row of values.
struct Int8Range {
  // Value of one int8 step: the largest magnitude / 127. It is 0 if all values are (nearly) zero,
  // and NaN if any value is not finite.
  float scale;
  bool has_negative;
};
Int8Range RangeOf(const float* x, int64_t count);

// q = x / scale, rounded to the nearest integer; zeros if the scale is 0 or NaN.
void Quantize(const float* x, int64_t count, float scale, int8_t* q);
// Computes y[i] = y[i] * scales[i] + bias[i] for each of `rows` rows of y, in place.
void ScaleRows(float* y, int64_t rows, int64_t size, const float* scales, const float* bias);

}  // namespace hearth::caffe
