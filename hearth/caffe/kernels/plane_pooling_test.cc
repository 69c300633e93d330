#include "hearth/caffe/kernels/plane_pooling.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cfloat>
#include <vector>

namespace hearth::caffe {
namespace {

using ::testing::ElementsAre;

// 2 x 3 inputs, windows of 2 x 2 at stride 1.
const PlanePooling kPlane = {{.inputs = 2, .outputs = 1, .kernel = 2},
                             {.inputs = 3, .outputs = 2, .kernel = 2}};
const std::vector<float> kInputs = {1, 4, 2,  //
                                    3, 0, 4};

TEST(PlanePooling, MaxTakesTheFirstOfEqualValues) {
  std::vector<float> y(2);
  std::vector<int32_t> argmax(2);
  kPlane.Max(kInputs.data(), y.data(), argmax.data());
  EXPECT_THAT(y, ElementsAre(4, 4));
  EXPECT_THAT(argmax, ElementsAre(1, 1));
  std::vector<float> dx(6, 9);
  kPlane.GradientAt(std::vector<float>{1, 2}.data(), argmax.data(), dx.data());
  EXPECT_THAT(dx, ElementsAre(0, 3, 0, 0, 0, 0));
}

TEST(PlanePooling, AWindowOutsideOfTheImageIsEmpty) {
  PlanePooling plane = kPlane;
  plane.rows.pad = 4;  // window 0 consists of rows -4 and -3
  std::vector<float> y(2);
  std::vector<int32_t> index(2);
  plane.Max(kInputs.data(), y.data(), index.data());
  EXPECT_THAT(y, ElementsAre(-FLT_MAX, -FLT_MAX));
  EXPECT_THAT(index, ElementsAre(-1, -1));
  plane.Draw(kInputs.data(), std::vector<float>{0.5, 0.5}.data(), y.data(), index.data());
  EXPECT_THAT(y, ElementsAre(0, 0));
  EXPECT_THAT(index, ElementsAre(-1, -1));
}

TEST(PlanePooling, AverageDividesByTheWindow) {
  std::vector<float> y(2);
  kPlane.Average(kInputs.data(), y.data());
  EXPECT_THAT(y, ElementsAre(2, 2.5));
  std::vector<float> dx(6, 9);
  kPlane.AverageGradient(std::vector<float>{4, 8}.data(), dx.data());
  EXPECT_THAT(dx, ElementsAre(1, 3, 2, 1, 3, 2));
}

TEST(PlanePooling, DrawsAValueByItsShareOfTheWindow) {
  std::vector<float> y(2);
  std::vector<int32_t> drawn(2);
  // The sums are 8 and 10. The thresholds are therefore 4, reached by 1 + 4,
  // and 9, reached by 4 + 2 + 0 + 4.
  kPlane.Draw(kInputs.data(), std::vector<float>{0.5, 0.9}.data(), y.data(), drawn.data());
  EXPECT_THAT(y, ElementsAre(4, 4));
  EXPECT_THAT(drawn, ElementsAre(1, 5));
  kPlane.Expected(kInputs.data(), y.data());
  EXPECT_THAT(y, ElementsAre(26.0f / 8, 36.0f / 10));
}

}  // namespace
}  // namespace hearth::caffe
