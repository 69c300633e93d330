#include "hearth/caffe/kernels/vector_math.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

namespace hearth::caffe {
namespace {

using Values = std::vector<float>;

// Positive and negative values, from tiny ones to the flat ends of the functions.
Values Samples() {
  Values values{0.f};
  for (float x = 1e-6f; x < 100; x *= 1.0007f) {
    values.push_back(x);
    values.push_back(-x);
  }
  return values;
}

template <typename Function, typename Exact>
double LargestRelativeError(Function f, Exact exact) {
  const Values x = Samples();
  Values y(x.size());
  f(x.data(), y.data(), static_cast<int64_t>(x.size()));
  double largest = 0;
  for (size_t i = 0; i < x.size(); ++i) {
    const double wanted = exact(double{x[i]});
    if (std::fabs(wanted) < 1e-36) continue;
    largest = std::max(largest, std::fabs((y[i] - wanted) / wanted));
  }
  return largest;
}

TEST(VectorMath, FunctionsAreExactToAFewBits) {
  EXPECT_LT(LargestRelativeError(TanhOf, [](double x) { return std::tanh(x); }), 3e-7);
  EXPECT_LT(LargestRelativeError(SigmoidOf, [](double x) { return 1 / (1 + std::exp(-x)); }), 3e-7);
}

TEST(VectorMath, NanStaysNanAndInfinityIsClamped) {
  const float infinity = std::numeric_limits<float>::infinity();
  Values x{std::nanf(""), infinity, -infinity}, y(3);
  TanhOf(x.data(), y.data(), 3);
  EXPECT_TRUE(std::isnan(y[0]));
  EXPECT_EQ(y[1], 1);
  EXPECT_EQ(y[2], -1);
  SigmoidOf(x.data(), y.data(), 3);
  EXPECT_TRUE(std::isnan(y[0]));
  EXPECT_EQ(y[1], 1);
  EXPECT_NEAR(y[2], 0, 1e-37);
}

TEST(VectorMath, ReluKeepsNanAndItsGradientFollowsTheSign) {
  const Values x{-2, 0, 3, std::nanf(""), -0.f};
  const auto count = static_cast<int64_t>(x.size());
  for (const float slope : {0.f, 0.25f}) {
    Values y(x.size()), dx(x.size(), 8);
    RectifierOf(x.data(), slope, y.data(), count);
    EXPECT_EQ(Values(y.begin(), y.begin() + 3), (Values{-2 * slope, 0, 3}));
    EXPECT_TRUE(std::isnan(y[3]));
    RectifierGradient(x.data(), dx.data(), slope, dx.data(), count);
    EXPECT_EQ(dx, (Values{8 * slope, 8 * slope, 8, 8 * slope, 8 * slope}));
  }
}

// The softmax of outer x size x inner values, directly by the formula.
Values ExactSoftmax(const SoftmaxShape& s, const Values& x) {
  Values y(x.size());
  for (int64_t o = 0; o < s.outer; ++o) {
    for (int64_t i = 0; i < s.inner; ++i) {
      const auto at = [&](int64_t c) {
        return static_cast<size_t>((o * s.size + c) * s.inner + i);
      };
      double sum = 0;
      for (int64_t c = 0; c < s.size; ++c) sum += std::exp(double{x[at(c)]});
      for (int64_t c = 0; c < s.size; ++c) {
        y[at(c)] = static_cast<float>(std::exp(double{x[at(c)]}) / sum);
      }
    }
  }
  return y;
}

class SoftmaxOf : public testing::TestWithParam<SoftmaxShape> {};

TEST_P(SoftmaxOf, ValuesAndGradientsMatchTheFormula) {
  const SoftmaxShape s = GetParam();
  const auto count = static_cast<size_t>(s.outer * s.size * s.inner);
  Values x(count), dy(count), y(count), dx(count);
  for (size_t i = 0; i < count; ++i) {
    x[i] = static_cast<float>(std::sin(static_cast<double>(i * i)) * 5);
    dy[i] = static_cast<float>(std::cos(static_cast<double>(i)));
  }
  Softmax(s, x.data(), y.data());
  SoftmaxGradient(s, y.data(), dy.data(), dx.data());
  const Values exact = ExactSoftmax(s, x);
  for (size_t i = 0; i < count; ++i) {
    ASSERT_NEAR(y[i], exact[i], 1e-6) << i;
    const size_t inner = i % static_cast<size_t>(s.inner);
    const size_t first =
        i / static_cast<size_t>(s.size * s.inner) * static_cast<size_t>(s.size * s.inner) + inner;
    double sum = 0;
    for (int64_t c = 0; c < s.size; ++c) {
      const size_t at = first + static_cast<size_t>(c * s.inner);
      sum += double{exact[at]} * dy[at];
    }
    ASSERT_NEAR(dx[i], exact[i] * (dy[i] - sum), 1e-6) << i;
  }
}

INSTANTIATE_TEST_SUITE_P(Shapes, SoftmaxOf,
                         testing::Values(SoftmaxShape{1, 1, 1}, SoftmaxShape{3, 10, 1},
                                         SoftmaxShape{2, 1000, 1}, SoftmaxShape{2, 3, 5},
                                         SoftmaxShape{2, 21, 300}));

TEST(VectorMath, SoftmaxOfMaskedValuesIsZero) {
  Values x{0, -1e9f, 1};
  Softmax({1, 3, 1}, x.data(), x.data());
  EXPECT_EQ(x[1], 0);
  EXPECT_FLOAT_EQ(x[0] + x[2], 1);
}

}  // namespace
}  // namespace hearth::caffe
