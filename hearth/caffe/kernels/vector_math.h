// Vectorized functions for three instruction sets, as fast as those of a vector library. They do
// not set errno. Thread-safe.
#pragma once

#include <cstdint>

namespace hearth::caffe {

// y[i] = f(x[i]); y may be x. Relative error at most 3e-7; NaN stays NaN. Multithreaded.
void TanhOf(const float* x, float* y, int64_t count);
void SigmoidOf(const float* x, float* y, int64_t count);

// y = max(x, 0) + slope min(x, 0); NaN stays NaN. y may be x.
void RectifierOf(const float* x, float slope, float* y, int64_t count);
// dx = dy where x is above zero, else slope dy; dx may be dy or x.
void RectifierGradient(const float* x, const float* dy, float slope, float* dx, int64_t count);

// Softmax over the middle axis of outer x size x inner values; y may be x. Multithreaded.
struct SoftmaxShape {
  int64_t outer, size, inner;
};
void Softmax(const SoftmaxShape& shape, const float* x, float* y);
// dx = y (dy - sum of y dy); dx may be dy.
void SoftmaxGradient(const SoftmaxShape& shape, const float* y, const float* dy, float* dx);

}  // namespace hearth::caffe
