#include "hearth/caffe/net/filler.h"

#include <gmock/gmock.h>

#include <cmath>

#include "hearth/base/error.h"
#include "hearth/caffe/proto/text_reader.h"

namespace hearth::caffe {
namespace {

at::Tensor Filled(const std::string& text, Shape shape) {
  FillerParameter filler;
  ParseText(text, "filler", &filler);
  Blob blob(std::move(shape));
  Random random(3);
  Fill(filler, blob, random);
  return blob.data().clone();
}

double Std(const at::Tensor& values) { return values.std().item<double>(); }

TEST(Fill, ConstantIsTheDefault) {
  EXPECT_EQ(Filled("", {3}).abs().sum().item<float>(), 0.0f);
  EXPECT_EQ(Filled("value: 2.5", {3}).sum().item<float>(), 7.5f);
}

TEST(Fill, ScalesByFan) {
  const double in = 200, out = 50;  // shape 50 x 20 x 10: fan-in 200, fan-out 500
  const Shape shape = {50, 20, 10};
  EXPECT_NEAR(Std(Filled("type: 'xavier'", shape)), std::sqrt(1 / in), 0.002);
  EXPECT_NEAR(Std(Filled("type: 'msra'", shape)), std::sqrt(2 / in), 0.003);
  EXPECT_NEAR(Std(Filled("type: 'msra' variance_norm: FAN_OUT", shape)), std::sqrt(2 / (10 * out)),
              0.002);
  EXPECT_NEAR(Std(Filled("type: 'msra' variance_norm: AVERAGE", shape)), std::sqrt(2 / 350.0),
              0.002);
  EXPECT_LE(Filled("type: 'xavier'", shape).abs().max().item<double>(), std::sqrt(3 / in));
}

TEST(Fill, UniformStaysInItsRange) {
  const at::Tensor values = Filled("type: 'uniform' min: -2 max: 3", {1000});
  EXPECT_GE(values.min().item<float>(), -2.0f);
  EXPECT_LE(values.max().item<float>(), 3.0f);
  EXPECT_NEAR(values.mean().item<double>(), 0.5, 0.2);
}

TEST(Fill, SparseGaussianKeepsAFewPerOutput) {
  const at::Tensor values = Filled("type: 'gaussian' std: 1 sparse: 5", {50, 200});
  EXPECT_NEAR(values.ne(0).sum().item<double>(), 50 * 200 * 5 / 50.0, 100);
}

TEST(Fill, PositiveUnitballSumsToOnePerRow) {
  const at::Tensor rows = Filled("type: 'positive_unitball'", {4, 5, 2}).view({4, 10}).sum(1);
  EXPECT_TRUE(at::allclose(rows, at::ones({4})));
}

TEST(Fill, BilinearIsTheKernelOfInterpolation) {
  const at::Tensor kernel = Filled("type: 'bilinear'", {1, 1, 4, 4})[0][0];
  EXPECT_TRUE(at::allclose(kernel[1], at::tensor({0.1875, 0.5625, 0.5625, 0.1875}, at::kFloat)));
  const at::Tensor odd = Filled("type: 'bilinear'", {1, 1, 3, 3})[0][0];
  EXPECT_TRUE(at::allclose(odd[1], at::tensor({0.5, 1.0, 0.5}, at::kFloat)));
  EXPECT_THROW(Filled("type: 'bilinear'", {1, 1, 4, 3}), Error);
}

TEST(Fill, RefusesWhatCannotBe) {
  EXPECT_THAT(
      [] { Filled("type: 'xavir'", {2}); },
      testing::ThrowsMessage<Error>(testing::HasSubstr("no filler 'xavir'; did you mean xavier?")));
  EXPECT_THROW(Filled("type: 'xavier' sparse: 3", {2}), Error);
  EXPECT_THROW(Filled("type: 'xavier'", {}), Error);
  EXPECT_THROW(Filled("type: 'uniform' min: 1 max: 0", {2}), Error);
}

}  // namespace
}  // namespace hearth::caffe
