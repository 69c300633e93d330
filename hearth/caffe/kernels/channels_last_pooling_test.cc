#include "hearth/caffe/kernels/channels_last_pooling.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cfloat>
#include <cmath>
#include <vector>

namespace hearth::caffe {
namespace {

// 5 x 6 pixels, windows of 3 x 3 at every second pixel, with padding.
ChannelsLastPooling PoolingExample(int64_t channels) {
  return {{5, 3, 3, 2, 1}, {6, 4, 3, 2, 1}, channels};
}

std::vector<float> PoolingImage(int64_t channels) {
  std::vector<float> x(static_cast<size_t>(5 * 6 * channels));
  for (size_t i = 0; i < x.size(); ++i) x[i] = std::sin(static_cast<float>(i * i));
  return x;
}

// Calls f(output value's index, input value's index) for each pixel of each window.
template <typename Function>
void ForEachPair(int64_t channels, Function f) {
  const ChannelsLastPooling p = PoolingExample(channels);
  for (int64_t oh = 0; oh < 3; ++oh)
    for (int64_t ow = 0; ow < 4; ++ow)
      for (int64_t c = 0; c < channels; ++c)
        for (int64_t h = p.rows.Clipped(oh).begin; h < p.rows.Clipped(oh).end; ++h)
          for (int64_t w = p.columns.Clipped(ow).begin; w < p.columns.Clipped(ow).end; ++w) {
            f((oh * 4 + ow) * channels + c, (h * 6 + w) * channels + c);
          }
}

// Tests numbers of channels around the vector widths, 16 and 4.
class ChannelsLastPoolingTest : public testing::TestWithParam<int64_t> {};

TEST_P(ChannelsLastPoolingTest, FindsTheLargestValueAndItsPixel) {
  const int64_t channels = GetParam();
  const std::vector<float> x = PoolingImage(channels);
  std::vector<float> expected(12 * channels, -FLT_MAX), y(12 * channels);
  std::vector<int32_t> chosen(y.size());
  ForEachPair(channels,
              [&](int64_t out, int64_t in) { expected[out] = std::max(expected[out], x[in]); });
  PoolingExample(channels).Max(x.data(), y.data(), chosen.data());
  EXPECT_EQ(y, expected);
  for (size_t i = 0; i < y.size(); ++i) {
    if (chosen[i] < 0) continue;  // a window outside of the image
    ASSERT_EQ(x[chosen[i] * channels + static_cast<int64_t>(i) % channels], y[i]);
  }
  std::vector<float> dy(y.size(), 1), dx(x.size()), wanted(x.size());
  for (size_t i = 0; i < y.size(); ++i) {
    if (chosen[i] >= 0) wanted[chosen[i] * channels + static_cast<int64_t>(i) % channels] += 1;
  }
  PoolingExample(channels).GradientAt(dy.data(), chosen.data(), dx.data());
  EXPECT_EQ(dx, wanted);
}

TEST_P(ChannelsLastPoolingTest, AveragesCountThePadding) {
  const int64_t channels = GetParam();
  const ChannelsLastPooling p = PoolingExample(channels);
  const std::vector<float> x = PoolingImage(channels);
  std::vector<float> sums(12 * channels), y(12 * channels), dx(x.size()), wanted(x.size());
  const auto divisor = [&](int64_t out) {
    const int64_t window = out / channels;
    return PoolingAxis::Divisor(p.rows, window / 4, p.columns, window % 4);
  };
  const std::vector<float> dy(y.size(), 1);
  ForEachPair(channels, [&](int64_t out, int64_t in) {
    sums[out] += x[in];
    wanted[in] += 1 / divisor(out);
  });
  p.Average(x.data(), y.data());
  p.AverageGradient(dy.data(), dx.data());
  for (size_t i = 0; i < y.size(); ++i) {
    ASSERT_NEAR(y[i], sums[i] / divisor(static_cast<int64_t>(i)), 1e-6);
  }
  for (size_t i = 0; i < dx.size(); ++i) ASSERT_NEAR(dx[i], wanted[i], 1e-6);
}

INSTANTIATE_TEST_SUITE_P(Channels, ChannelsLastPoolingTest, testing::Values(1, 3, 4, 16, 23));

}  // namespace
}  // namespace hearth::caffe
