#include "hearth/collective/operation/combine.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <vector>

#include "hearth/collective/operation/half.h"

namespace hearth::collective {
namespace {

// More elements than any vector register holds, with a remainder.
constexpr size_t kElements = 133;

template <typename T>
void Check(DataType type, Op op, T (*expected)(T, T)) {
  std::vector<T> a(kElements);
  std::vector<T> b(kElements);
  for (size_t i = 0; i < kElements; ++i) {
    a[i] = static_cast<T>(i % 7);
    b[i] = static_cast<T>(i % 5 + 1);
  }
  std::vector<T> into = a;
  Combine({type, op}, into.data(), b.data(), kElements);
  std::vector<T> first = a;
  std::vector<T> second = b;
  CombineBoth({type, op}, first.data(), second.data(), kElements);
  for (size_t i = 0; i < kElements; ++i) {
    const T value = expected(a[i], b[i]);
    EXPECT_EQ(into[i], value);
    EXPECT_EQ(first[i], value);
    EXPECT_EQ(second[i], value);
  }
}

template <typename T>
void CheckAllOps(DataType type) {
  Check<T>(type, Op::kSum, [](T a, T b) { return static_cast<T>(a + b); });
  Check<T>(type, Op::kMin, [](T a, T b) { return std::min(a, b); });
  Check<T>(type, Op::kMax, [](T a, T b) { return std::max(a, b); });
}

TEST(Combine, Float32) { CheckAllOps<float>(DataType::kFloat32); }
TEST(Combine, Float64) { CheckAllOps<double>(DataType::kFloat64); }
TEST(Combine, Int32) { CheckAllOps<int32_t>(DataType::kInt32); }
TEST(Combine, Int64) { CheckAllOps<int64_t>(DataType::kInt64); }
TEST(Combine, Uint8) { CheckAllOps<uint8_t>(DataType::kUint8); }

TEST(Combine, IntegerSumsWrapAround) {
  int32_t a = std::numeric_limits<int32_t>::max();
  const int32_t one = 1;
  Combine({DataType::kInt32, Op::kSum}, &a, &one, 1);
  EXPECT_EQ(a, std::numeric_limits<int32_t>::min());
}

TEST(Combine, BoolsReduceByOrAndAnd) {
  // As a bool, 2 counts as true.
  const std::vector<uint8_t> a = {0, 0, 1, 2};
  const std::vector<uint8_t> b = {0, 2, 0, 1};
  const auto combine = [&](Op op) {
    std::vector<uint8_t> into = a;
    Combine({DataType::kBool, op}, into.data(), b.data(), into.size());
    return into;
  };
  EXPECT_EQ(combine(Op::kSum), (std::vector<uint8_t>{0, 1, 1, 1}));
  EXPECT_EQ(combine(Op::kMax), (std::vector<uint8_t>{0, 1, 1, 1}));
  EXPECT_EQ(combine(Op::kMin), (std::vector<uint8_t>{0, 0, 0, 1}));
}

TEST(Combine, MinAndMaxPropagateNanFromEitherSide) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  for (const Op op : {Op::kMin, Op::kMax}) {
    std::vector<double> a(kElements, 1);
    std::vector<double> b(kElements, 2);
    a[5] = b[7] = nan;
    Combine({DataType::kFloat64, op}, a.data(), b.data(), kElements);
    for (size_t i = 0; i < kElements; ++i) EXPECT_EQ(std::isnan(a[i]), i == 5 || i == 7) << i;
  }
}

TEST(Combine, HalvesAreAddedAsFloat32AndRounded) {
  std::vector<Float16> a(kElements, ToFloat16(2048));
  const std::vector<Float16> b(kElements, ToFloat16(3));
  Combine({DataType::kFloat16, Op::kSum}, a.data(), b.data(), kElements);
  for (const Float16 value : a) EXPECT_EQ(ToFloat(value), 2052);  // 2051 is a tie
  Float16 largest = ToFloat16(65504);
  Combine({DataType::kFloat16, Op::kSum}, &largest, a.data(), 1);
  EXPECT_TRUE(std::isinf(ToFloat(largest)));
  Bfloat16 c = ToBfloat16(1e38F);
  const Bfloat16 d = ToBfloat16(2e38F);
  Combine({DataType::kBfloat16, Op::kMax}, &c, &d, 1);
  EXPECT_EQ(c.bits, d.bits);
}

TEST(Combine, DivisionOfIntegersIsTowardsZero) {
  std::vector<int32_t> ints = {7, -7, 0};
  Divide(DataType::kInt32, ints.data(), ints.size(), 2);
  EXPECT_EQ(ints, (std::vector<int32_t>{3, -3, 0}));
  uint8_t byte = 200;
  Divide(DataType::kUint8, &byte, 1, 256);
  EXPECT_EQ(byte, 0);
  float number = 3;
  Divide(DataType::kFloat32, &number, 1, 2);
  EXPECT_EQ(number, 1.5F);
}

TEST(Half, EveryFloat16RoundTrips) {
  for (uint32_t bits = 0; bits < 0x10000U; ++bits) {
    const Float16 half = {static_cast<uint16_t>(bits)};
    const float value = ToFloat(half);
    if (std::isnan(value)) {
      ASSERT_GT(bits & 0x7fffU, 0x7c00U);
      ASSERT_TRUE(std::isnan(ToFloat(ToFloat16(value))));
    } else {
      ASSERT_EQ(ToFloat16(value).bits, bits);
    }
  }
}

// A tie is the midpoint of two adjacent float16 values. Ties and the floats next to them test the
// rounding.
TEST(Half, Float16RoundsToNearestEven) {
  for (uint16_t bits = 0; bits < 0x7bffU; ++bits) {
    const uint16_t next = static_cast<uint16_t>(bits + 1);
    const float tie = (ToFloat(Float16{bits}) + ToFloat(Float16{next})) / 2;
    ASSERT_EQ(ToFloat16(tie).bits, bits % 2 == 0 ? bits : next);
    ASSERT_EQ(ToFloat16(std::nextafter(tie, 0.0F)).bits, bits);
    ASSERT_EQ(ToFloat16(std::nextafter(tie, 1e9F)).bits, next);
    ASSERT_EQ(ToFloat16(-tie).bits, ToFloat16(tie).bits | 0x8000U);
  }
  EXPECT_EQ(ToFloat16(65519.99F).bits, 0x7bffU);
  EXPECT_EQ(ToFloat16(65520).bits, 0x7c00U);
  EXPECT_EQ(ToFloat16(std::numeric_limits<float>::infinity()).bits, 0x7c00U);
}

TEST(Half, Bfloat16RoundsToNearestEven) {
  EXPECT_EQ(ToBfloat16(std::bit_cast<float>(0x3f808000U)).bits, 0x3f80U);
  EXPECT_EQ(ToBfloat16(std::bit_cast<float>(0x3f818000U)).bits, 0x3f82U);
  EXPECT_EQ(ToBfloat16(std::bit_cast<float>(0x3f808001U)).bits, 0x3f81U);
  EXPECT_EQ(ToBfloat16(std::bit_cast<float>(0x7f7fffffU)).bits, 0x7f80U);  // infinity
  EXPECT_TRUE(std::isnan(ToFloat(ToBfloat16(std::bit_cast<float>(0x7f800001U)))));
}

TEST(Part, CoversEverythingAndDiffersByAtMostOne) {
  for (const size_t count : {0U, 1U, 4U, 5U, 23U}) {
    size_t next = 0;
    for (int i = 0; i < 5; ++i) {
      const Range part = Part(count, 5, i);
      EXPECT_EQ(part.begin, next);
      EXPECT_TRUE(part.size() == count / 5 || part.size() == count / 5 + 1);
      next = part.end;
    }
    EXPECT_EQ(next, count);
  }
}

}  // namespace
}  // namespace hearth::collective
