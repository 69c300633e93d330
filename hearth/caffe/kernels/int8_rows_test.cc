#include "hearth/caffe/kernels/int8_rows.h"

#include <gmock/gmock.h>

#include <cmath>
#include <limits>
#include <vector>

namespace hearth::caffe {
namespace {

using testing::Each;
using testing::ElementsAre;
using Values = std::vector<float>;
constexpr float kInfinity = std::numeric_limits<float>::infinity();

Int8Range RangeIn(const Values& x) { return RangeOf(x.data(), static_cast<int64_t>(x.size())); }

std::vector<int8_t> Quantized(const Values& x, float scale) {
  std::vector<int8_t> q(x.size(), 99);
  Quantize(x.data(), static_cast<int64_t>(x.size()), scale, q.data());
  return q;
}

TEST(Int8Rows, TheLargestMagnitudeBecomes127) {
  EXPECT_EQ(RangeIn({1, 254, 3}).scale, 2);
  EXPECT_FALSE(RangeIn({1, 254, 3}).has_negative);
  EXPECT_EQ(RangeIn({1, -254, 3}).scale, 2);
  EXPECT_TRUE(RangeIn({1, -254, 3}).has_negative);
  EXPECT_THAT(Quantized({254, -254, 0}, 2), ElementsAre(127, -127, 0));
}

// Tests counts around 32, the number of values that are compared at a time.
TEST(Int8Rows, EachValueCounts) {
  for (const size_t count : {1, 31, 32, 33, 100}) {
    for (size_t at = 0; at < count; ++at) {
      Values x(count, 0.5f);
      x[at] = -127;
      EXPECT_EQ(RangeIn(x).scale, 1) << count << ", " << at;
      EXPECT_TRUE(RangeIn(x).has_negative);
    }
  }
}

TEST(Int8Rows, RoundsToTheNearestAndTiesToEven) {
  EXPECT_THAT(Quantized({0.4f, 0.6f, 0.5f, 1.5f, -0.5f, -0.6f, -1.5f, -126.6f}, 1),
              ElementsAre(0, 1, 0, 2, 0, -1, -2, -127));
}

TEST(Int8Rows, ZerosAndNearlyZerosHaveScaleZero) {
  for (const float value : {0.f, 1e-40f, -1e-40f}) {
    const Values x(40, value);
    EXPECT_EQ(RangeIn(x).scale, 0);
    EXPECT_THAT(Quantized(x, 0), Each(0));
  }
}

TEST(Int8Rows, AValueThatIsNotFiniteMakesTheScaleNan) {
  for (const float value : {kInfinity, -kInfinity, std::nanf("")}) {
    for (const size_t at : {0, 35}) {
      Values x(40, 1);
      x[at] = value;
      EXPECT_TRUE(std::isnan(RangeIn(x).scale)) << value << " at " << at;
      EXPECT_THAT(Quantized(x, RangeIn(x).scale), Each(0));
    }
  }
}

TEST(Int8Rows, ScalesEachColumn) {
  Values y{1, 2, 3, 4};
  const Values scales{10, 100}, bias{0.5f, -1};
  ScaleRows(y.data(), 2, 2, scales.data(), bias.data());
  EXPECT_THAT(y, ElementsAre(10.5f, 199, 30.5f, 399));
}

TEST(Int8Rows, OneOutlierTakesTheWholeRange) {
  for (const float outlier : {1000.f, -1000.f}) {
    Values x(40, 1);
    x[17] = outlier;
    const Int8Range range = RangeIn(x);
    EXPECT_EQ(range.scale, 1000.f / 127);
    const std::vector<int8_t> q = Quantized(x, range.scale);
    EXPECT_EQ(q[17], outlier > 0 ? 127 : -127);
    EXPECT_EQ(q[16], 0) << "a step is larger than two of the others";
  }
}

TEST(Int8Rows, TheLargestFloatsHaveAFiniteScale) {
  const float largest = std::numeric_limits<float>::max();
  const Values x{largest, -largest, largest / 2, 0};
  const Int8Range range = RangeIn(x);
  EXPECT_TRUE(std::isfinite(range.scale));
  const std::vector<int8_t> q = Quantized(x, range.scale);
  EXPECT_EQ(q[0], 127);
  EXPECT_EQ(q[1], -127);
  EXPECT_NEAR(q[2], 63.5, 0.5);
  EXPECT_EQ(q[3], 0);
}

TEST(Int8Rows, SmallValuesKeepTheirLevelsUpToNearlyZero) {
  for (const float unit : {1.f, 1e-10f, 1e-20f, 1e-28f}) {
    const Values x{127 * unit, -64 * unit, unit, 0};
    EXPECT_THAT(Quantized(x, RangeIn(x).scale), ElementsAre(127, -64, 1, 0)) << unit;
  }
}

TEST(Int8Rows, NoValuesHaveScaleZero) {
  EXPECT_EQ(RangeIn({}).scale, 0);
  EXPECT_FALSE(RangeIn({}).has_negative);
  EXPECT_TRUE(Quantized({}, 1).empty());
  EXPECT_FALSE(RangeIn({-0.f, 1}).has_negative) << "a negative zero";
}

// Whatever the count, no byte after the last value may be written.
TEST(Int8Rows, WritesAsManyValuesAsAreGiven) {
  for (int64_t count = 0; count < 70; ++count) {
    for (const float scale : {0.f, 1.f, std::nanf("")}) {
      const Values x(static_cast<size_t>(count), 5);
      std::vector<int8_t> q(static_cast<size_t>(count) + 1, 99);
      Quantize(x.data(), count, scale, q.data());
      EXPECT_EQ(q.back(), 99) << count;
      q.pop_back();
      EXPECT_THAT(q, Each(scale == 1 ? 5 : 0)) << count;
    }
  }
}

TEST(Int8Rows, ScalesNoRowsAndRowsOfAnyLength) {
  ScaleRows(nullptr, 0, 3, nullptr, nullptr);
  for (size_t size = 1; size < 40; ++size) {
    Values y(3 * size + 1, 2), scales(size), bias(size);
    for (size_t i = 0; i < size; ++i) {
      scales[i] = static_cast<float>(i);
      bias[i] = -static_cast<float>(i) / 2;
    }
    ScaleRows(y.data(), 3, static_cast<int64_t>(size), scales.data(), bias.data());
    for (size_t i = 0; i < 3 * size; ++i) {
      ASSERT_EQ(y[i], 1.5f * static_cast<float>(i % size)) << size;
    }
    EXPECT_EQ(y.back(), 2);
  }
}

TEST(Int8Rows, ANanScaleMakesEachColumnNan) {
  Values y{1, 2, 3, 4};
  const Values scales{std::nanf(""), 1}, bias{0, 0};
  ScaleRows(y.data(), 2, 2, scales.data(), bias.data());
  EXPECT_TRUE(std::isnan(y[0]) && std::isnan(y[2]));
  EXPECT_EQ(y[1], 2);
  EXPECT_EQ(y[3], 4);
}

}  // namespace
}  // namespace hearth::caffe
