// Local response normalization across channels, of images whose channels are last:
// y = x i^beta, where i = 1 / (k + alpha * the sum of the squares around x). Thread-safe.
#pragma once

#include <cstdint>
#include <vector>

namespace hearth::caffe {

// i^beta. The root form of the usual exponent is several times faster than pow.
void PowersOf(const float* inverse, float beta, float* out, int64_t count);

struct ResponseNorm {
  int64_t size;  // channels in a sum, odd
  float k, alpha, beta;

  // `places` of `channels` values each. What a place needs stays in a core's first cache.
  struct Places {
    int64_t places, channels;
    const float* x;
  };
  // Writes `inverse`, which the gradient needs, and y.
  void Forward(const Places& at, float* inverse, float* y) const;
  // dx must not be dy.
  void Backward(const Places& at, const float* inverse, const float* dy, float* dx) const;
};

}  // namespace hearth::caffe
