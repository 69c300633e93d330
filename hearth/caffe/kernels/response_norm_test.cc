#include "hearth/caffe/kernels/response_norm.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <vector>

namespace hearth::caffe {
namespace {

std::vector<float> Wave(int64_t count) {
  std::vector<float> values(static_cast<size_t>(count));
  for (size_t i = 0; i < values.size(); ++i) values[i] = std::sin(static_cast<float>(i)) * 2;
  return values;
}

// Tests fewer and more channels than a sum contains.
TEST(ResponseNormTest, DividesByTheSquaresOfTheNeighbouringChannels) {
  for (const int64_t channels : {1, 3, 20}) {
    for (const float beta : {0.75F, 0.5F}) {
      const ResponseNorm norm{5, 2, 0.1F, beta};
      const std::vector<float> x = Wave(4 * channels);
      std::vector<float> inverse(x.size()), y(x.size());
      norm.Forward({4, channels, x.data()}, inverse.data(), y.data());
      for (int64_t pixel = 0; pixel < 4; ++pixel) {
        for (int64_t c = 0; c < channels; ++c) {
          double sum = 0;
          for (int64_t d = std::max<int64_t>(0, c - 2); d <= std::min(channels - 1, c + 2); ++d) {
            sum += std::pow(x[pixel * channels + d], 2);
          }
          const double expected = x[pixel * channels + c] * std::pow(2 + 0.1 * sum, -beta);
          ASSERT_NEAR(y[pixel * channels + c], expected, 1e-5) << channels << " channels";
        }
      }
    }
  }
}

TEST(ResponseNormTest, TheGradientIsThatOfTheForwardPass) {
  constexpr int64_t kChannels = 7;
  constexpr float kStep = 1e-2F;
  const ResponseNorm norm{3, 1, 0.5F, 0.75F};
  const std::vector<float> dy = {1, -2, 0.5F, 3, -1, 2, 1};
  const auto total = [&](std::vector<float> x) {
    std::vector<float> inverse(kChannels), y(kChannels);
    norm.Forward({1, kChannels, x.data()}, inverse.data(), y.data());
    double sum = 0;
    for (size_t i = 0; i < kChannels; ++i) sum += double{y[i]} * dy[i];
    return sum;
  };
  const std::vector<float> x = Wave(kChannels);
  std::vector<float> inverse(kChannels), y(kChannels), dx(kChannels);
  norm.Forward({1, kChannels, x.data()}, inverse.data(), y.data());
  norm.Backward({1, kChannels, x.data()}, inverse.data(), dy.data(), dx.data());
  for (size_t i = 0; i < kChannels; ++i) {
    std::vector<float> more = x, less = x;
    more[i] += kStep;
    less[i] -= kStep;
    EXPECT_NEAR(dx[i], (total(more) - total(less)) / (2 * kStep), 1e-3) << i;
  }
}

TEST(PowersOfTest, TheUsualExponentIsComputedFaster) {
  const std::vector<float> inverse = {0.1F, 0.5F, 1, 2};
  std::vector<float> powers(4);
  for (const float beta : {0.75F, 0.3F}) {
    PowersOf(inverse.data(), beta, powers.data(), 4);
    for (size_t i = 0; i < 4; ++i) EXPECT_FLOAT_EQ(powers[i], std::pow(inverse[i], beta));
  }
}

}  // namespace
}  // namespace hearth::caffe
