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

// More values than are compared at a time.
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

}  // namespace
}  // namespace hearth::caffe
