#include "hearth/caffe/kernels/response_norm.h"

#include <cmath>

#include "hearth/base/for_each_cpu.h"

namespace hearth::caffe {
namespace {

// sums[c] = padded[c] + ... + padded[c + size - 1]. There is one pass per offset, which is a plain
// vector addition. A running sum would accumulate the rounding errors of all channels before it.
HEARTH_INLINE void SumRuns(const float* padded, int64_t size, float* sums, int64_t count) {
#pragma GCC ivdep
  for (int64_t c = 0; c < count; ++c) sums[c] = padded[c];
  for (int64_t d = 1; d < size; ++d) {
#pragma GCC ivdep
    for (int64_t c = 0; c < count; ++c) sums[c] += padded[c + d];
  }
}

HEARTH_INLINE void PowersOfEach(const float* inverse, float beta, float* out, int64_t count) {
  if (beta == 0.75f) {
#pragma GCC ivdep
    for (int64_t i = 0; i < count; ++i) {
      const float root = std::sqrt(inverse[i]);
      out[i] = root * std::sqrt(root);
    }
  } else {
    for (int64_t i = 0; i < count; ++i) out[i] = std::pow(inverse[i], beta);
  }
}

// y_c = x_c * i_c^beta, where i_c = 1 / (k + alpha * sum of x_d^2 over the `size` channels d around
// c). alpha is Caffe's alpha divided by `size`. `padded` is a row of channels between size / 2
// zeros on either side, which stay zero. `y` contains the powers until they are multiplied by x.
HEARTH_FOR_EACH_CPU void ForwardPixels(const ResponseNorm& norm, const ResponseNorm::Pixels& at,
                                       float* inverse, float* y, float* padded) {
  const int64_t channels = at.channels;
  const float k = norm.k, alpha = norm.alpha;
  const float* x = at.x;
  float* squares = padded + norm.size / 2;
  for (int64_t pixel = 0; pixel < at.pixels; ++pixel) {
#pragma GCC ivdep
    for (int64_t c = 0; c < channels; ++c) squares[c] = x[c] * x[c];
    SumRuns(padded, norm.size, inverse, channels);
#pragma GCC ivdep
    for (int64_t c = 0; c < channels; ++c) inverse[c] = 1.f / (k + alpha * inverse[c]);
    PowersOfEach(inverse, norm.beta, y, channels);
#pragma GCC ivdep
    for (int64_t c = 0; c < channels; ++c) y[c] *= x[c];
    x += channels;
    inverse += channels;
    y += channels;
  }
}

// Inputs and outputs of a gradient.
struct Gradients {
  const float *inverse, *dy;
  float *dx, *padded, *powers;
};

// dx_c = dy_c * i_c^beta - 2 * alpha * beta * x_c * sum of dy_d * x_d * i_d^(beta + 1) over the
// channels d around c. dx contains these sums until the last loop.
HEARTH_FOR_EACH_CPU void BackwardPixels(const ResponseNorm& norm, const ResponseNorm::Pixels& at,
                                        Gradients g) {
  const int64_t channels = at.channels;
  const float slope = 2 * norm.alpha * norm.beta;
  const float* x = at.x;
  float* ratios = g.padded + norm.size / 2;
  for (int64_t pixel = 0; pixel < at.pixels; ++pixel) {
    PowersOfEach(g.inverse, norm.beta, g.powers, channels);
#pragma GCC ivdep
    for (int64_t c = 0; c < channels; ++c) {
      g.powers[c] *= g.dy[c];
      ratios[c] = g.powers[c] * x[c] * g.inverse[c];
    }
    SumRuns(g.padded, norm.size, g.dx, channels);
#pragma GCC ivdep
    for (int64_t c = 0; c < channels; ++c) g.dx[c] = g.powers[c] - slope * x[c] * g.dx[c];
    x += channels;
    g.inverse += channels;
    g.dy += channels;
    g.dx += channels;
  }
}

}  // namespace

HEARTH_FOR_EACH_CPU void PowersOf(const float* inverse, float beta, float* out, int64_t count) {
  PowersOfEach(inverse, beta, out, count);
}

void ResponseNorm::Forward(const Pixels& at, float* inverse, float* y) const {
  std::vector<float> padded(at.channels + size);
  ForwardPixels(*this, at, inverse, y, padded.data());
}

void ResponseNorm::Backward(const Pixels& at, const float* inverse, const float* dy,
                            float* dx) const {
  std::vector<float> padded(at.channels + size), powers(at.channels);
  BackwardPixels(*this, at, {inverse, dy, dx, padded.data(), powers.data()});
}

}  // namespace hearth::caffe
