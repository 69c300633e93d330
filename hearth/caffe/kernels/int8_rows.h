// Conversion between float32 and int8, for three instruction sets with the same bits. One thread.
#pragma once

#include <cstdint>

namespace hearth::caffe {

// How a row of values is represented in int8.
struct Int8Range {
  // The value of 1: the largest magnitude / 127. 0 if all values are (nearly) zero, NaN if one is
  // not finite.
  float scale;
  bool has_negative;
};
Int8Range RangeOf(const float* x, int64_t count);

// q = x / scale, rounded to the nearest integer; zeros if the scale is 0 or NaN.
void Quantize(const float* x, int64_t count, float scale, int8_t* q);
// Each of `rows` rows of y: y[i] = y[i] * scales[i] + bias[i], in place.
void ScaleRows(float* y, int64_t rows, int64_t size, const float* scales, const float* bias);

}  // namespace hearth::caffe
