// 16-bit floating-point types, converted by integer arithmetic that compilers vectorise. Rounds to
// nearest, ties to even; float16 beyond 65504 becomes infinite; NaN stays NaN. The results do not
// depend on the flush-to-zero modes that frameworks set in their threads.
#pragma once

#include <bit>
#include <cstdint>

#include "hearth/base/for_each_cpu.h"

namespace hearth::collective {

// IEEE half precision: 5 bits of exponent, 10 of fraction.
struct Float16 {
  uint16_t bits = 0;
};

// The upper half of a float: 8 bits of exponent, 7 of fraction.
struct Bfloat16 {
  uint16_t bits = 0;
};

HEARTH_INLINE float ToFloat(Bfloat16 value) {
  return std::bit_cast<float>(static_cast<uint32_t>(value.bits) << 16);
}

HEARTH_INLINE float ToFloat(Float16 value) {
  const uint32_t magnitude = value.bits & 0x7fffU;
  // A float has 13 more bits of fraction and an exponent bias that is greater by 112.
  const uint32_t normal = (magnitude << 13) + (112U << 23);
  const uint32_t special = (magnitude << 13) | 0x7f800000U;
  const auto subnormal =
      std::bit_cast<uint32_t>(static_cast<float>(static_cast<int>(magnitude)) * 0x1p-24F);
  uint32_t bits = magnitude < 0x400U ? subnormal : normal;
  bits = magnitude >= 0x7c00U ? special : bits;
  return std::bit_cast<float>(bits | (static_cast<uint32_t>(value.bits & 0x8000U) << 16));
}

HEARTH_INLINE Bfloat16 ToBfloat16(float value) {
  const auto bits = std::bit_cast<uint32_t>(value);
  const uint32_t rounded = bits + 0x7fffU + ((bits >> 16) & 1U);
  const uint32_t quiet = bits | 0x400000U;
  const bool nan = (bits & 0x7fffffffU) > 0x7f800000U;
  return {static_cast<uint16_t>((nan ? quiet : rounded) >> 16)};
}

HEARTH_INLINE Float16 ToFloat16(float value) {
  const auto bits = std::bit_cast<uint32_t>(value);
  const uint32_t magnitude = bits & 0x7fffffffU;
  const uint32_t normal = (magnitude - (112U << 23) + 0xfffU + ((magnitude >> 13) & 1U)) >> 13;
  // The last fraction bit of a float in [0.5, 1) is 2^-24, float16's smallest step, so adding 0.5
  // rounds to a multiple of that step.
  const uint32_t subnormal =
      std::bit_cast<uint32_t>(std::bit_cast<float>(magnitude) + 0.5F) - 0x3f000000U;
  uint32_t half = magnitude < 0x38800000U ? subnormal : normal;
  half = magnitude >= 0x47800000U ? 0x7c00U : half;
  half = magnitude > 0x7f800000U ? 0x7e00U : half;
  return {static_cast<uint16_t>(half | ((bits >> 16) & 0x8000U))};
}

}  // namespace hearth::collective
