#pragma once

#include <cstdint>
#include <vector>

namespace hearth::caffe {

// out = inverse^beta. For the usual beta of 0.75, square roots are several times faster than pow.
void PowersOf(const float* inverse, float beta, float* out, int64_t count);

// Local response normalization across channels of channels-last images. Thread-safe.
//   y = x i^beta, where i = 1 / (k + alpha * the sum of the squares around x)
struct ResponseNorm {
  int64_t size;  // channels per sum, odd
  float k, alpha, beta;

  // Input of `pixels` pixels with `channels` values each. A pixel's intermediate values fit in the
  // L1 cache.
  struct Pixels {
    int64_t pixels, channels;
    const float* x;
  };
  // Writes y, and `inverse` for the gradient.
  void Forward(const Pixels& at, float* inverse, float* y) const;
  // dx must not be dy.
  void Backward(const Pixels& at, const float* inverse, const float* dy, float* dx) const;
};

}  // namespace hearth::caffe
