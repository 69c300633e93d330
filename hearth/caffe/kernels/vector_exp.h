// e^x for loops that compilers vectorize, which std::exp prevents. Only for .cc files that are
// compiled without errno and floating-point traps (CMakeLists.txt).
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>

#include "hearth/base/for_each_cpu.h"

namespace hearth::caffe {

// Returns e^x with a relative error of 1e-7; x is clamped to [-87, 88].
HEARTH_INLINE float VectorExp(float x) {
  constexpr float kLog2E = 1.44269504f;
  // ln 2 as a sum. The first summand has few bits, so its product with an integer is exact.
  constexpr float kLn2High = 0.693359375f, kLn2Low = -2.12194440e-4f;
  constexpr float kToWhole = 12582912.f;  // 1.5 * 2^23: adding it rounds to an integer
  x = std::min(std::max(x, -87.f), 88.f);
  const float shifted = x * kLog2E + kToWhole;
  const float n = shifted - kToWhole;
  const float r = (x - n * kLn2High) - n * kLn2Low;
  float series = 1.f / 5040;
  series = series * r + 1.f / 720;
  series = series * r + 1.f / 120;
  series = series * r + 1.f / 24;
  series = series * r + 1.f / 6;
  series = series * r + 0.5f;
  series = series * r + 1.f;
  series = series * r + 1.f;
  // The low bits of `shifted` contain n; shifting them into the exponent makes 2^n.
  return series * std::bit_cast<float>((std::bit_cast<uint32_t>(shifted) << 23) + 0x3F800000u);
}

HEARTH_INLINE float VectorSigmoid(float x) { return 1.f / (1.f + VectorExp(-x)); }

}  // namespace hearth::caffe
