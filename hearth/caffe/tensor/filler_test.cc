#include "hearth/caffe/tensor/filler.h"

#include <gmock/gmock.h>

#include <cmath>

#include "hearth/base/error.h"
#include "hearth/caffe/proto/text_reader.h"
#include "hearth/caffe/tensor/testing/tensor_testing.h"

namespace hearth::caffe {
namespace {

Tensor Filled(const std::string& text, Shape shape) {
  FillerParameter filler;
  ParseText(text, "filler", &filler);
  Blob blob(std::move(shape));
  Random random(3);
  Fill(filler, blob, random);
  return blob.data().clone();
}

double Std(const Tensor& values) {
  const auto count = static_cast<double>(values.numel());
  double squares = 0;
  for (const float value : ListOf(values)) squares += std::pow(value - TotalOf(values) / count, 2);
  return std::sqrt(squares / (count - 1));
}

TEST(Fill, ConstantIsTheDefault) {
  EXPECT_EQ(LargestMagnitude(Filled("", {3})), 0.0f);
  EXPECT_EQ(TotalOf(Filled("value: 2.5", {3})), 7.5f);
}

TEST(Fill, ScalesByFan) {
  const double in = 200,
               out = 50;  // for the shape 50 x 20 x 10: fan-in 200, fan-out 500
  const Shape shape = {50, 20, 10};
  EXPECT_NEAR(Std(Filled("type: 'xavier'", shape)), std::sqrt(1 / in), 0.002);
  EXPECT_NEAR(Std(Filled("type: 'msra'", shape)), std::sqrt(2 / in), 0.003);
  EXPECT_NEAR(Std(Filled("type: 'msra' variance_norm: FAN_OUT", shape)), std::sqrt(2 / (10 * out)),
              0.002);
  EXPECT_NEAR(Std(Filled("type: 'msra' variance_norm: AVERAGE", shape)), std::sqrt(2 / 350.0),
              0.002);
  EXPECT_LE(LargestMagnitude(Filled("type: 'xavier'", shape)), std::sqrt(3 / in));
}

TEST(Fill, UniformIsInItsRange) {
  const Tensor values = Filled("type: 'uniform' min: -2 max: 3", {1000});
  EXPECT_THAT(ListOf(values), testing::Each(testing::AllOf(testing::Ge(-2), testing::Le(3))));
  EXPECT_NEAR(TotalOf(values) / 1000, 0.5, 0.2);
}

TEST(Fill, SparseGaussianHasAFewValuesPerOutput) {
  const Tensor values = Filled("type: 'gaussian' std: 1 sparse: 5", {50, 200});
  const std::vector<float> list = ListOf(values);
  EXPECT_NEAR(list.size() - std::count(list.begin(), list.end(), 0.f), 50 * 200 * 5 / 50.0, 100);
}

TEST(Fill, PositiveUnitballSumsToOnePerRow) {
  const Tensor rows = Filled("type: 'positive_unitball'", {4, 5, 2}).view({4, 10});
  for (int64_t i = 0; i < 4; ++i) EXPECT_NEAR(TotalOf(rows[i]), 1, 1e-5);
}

TEST(Fill, BilinearIsTheInterpolationKernel) {
  const Tensor kernel = Filled("type: 'bilinear'", {1, 1, 4, 4})[0][0];
  EXPECT_TRUE(AllClose(kernel[1], Tensor::Copy({0.1875, 0.5625, 0.5625, 0.1875})));
  const Tensor odd = Filled("type: 'bilinear'", {1, 1, 3, 3})[0][0];
  EXPECT_TRUE(AllClose(odd[1], Tensor::Copy({0.5, 1.0, 0.5})));
  EXPECT_THROW(Filled("type: 'bilinear'", {1, 1, 4, 3}), Error);
}

TEST(Fill, RejectsInvalidFillers) {
  EXPECT_THAT([] { Filled("type: 'xavir'", {2}); },
              testing::ThrowsMessage<Error>(
                  testing::HasSubstr("unknown filler 'xavir'; did you mean xavier?")));
  EXPECT_THROW(Filled("type: 'xavier' sparse: 3", {2}), Error);
  EXPECT_THROW(Filled("type: 'xavier'", {}), Error);
  EXPECT_THROW(Filled("type: 'uniform' min: 1 max: 0", {2}), Error);
}

}  // namespace
}  // namespace hearth::caffe
