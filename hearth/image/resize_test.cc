#include "hearth/image/resize.h"

#include <gmock/gmock.h>

#include "hearth/base/error.h"
#include "hearth/image/testing/image_testing.h"

namespace hearth::image {
namespace {

using ::testing::ElementsAre;

TEST(Resize, ToTheSameSizeChangesNothing) {
  const Image image = GradientImage(3, 4, 3);
  EXPECT_EQ(Resize(image, 3, 4).pixels, image.pixels);
}

TEST(Resize, PutsPixelCentersAtHalfCoordinates) {
  // Output centers 0.25, 0.75, 1.25, 1.75 of two input pixels with centers 0.5 and 1.5.
  EXPECT_THAT(Resize({1, 2, 1, {0, 100}}, 1, 4).pixels, ElementsAre(0, 25, 75, 100));
  EXPECT_THAT(Resize({4, 1, 1, {0, 100, 200, 100}}, 2, 1).pixels, ElementsAre(50, 150));
}

TEST(Resize, KeepsChannelsSeparate) {
  const Image out = Resize({1, 2, 3, {0, 10, 20, 100, 110, 120}}, 1, 1);
  EXPECT_THAT(out.pixels, ElementsAre(50, 60, 70));
}

TEST(Resize, AgreesWithTheFormulaWithinOneGrayLevel) {
  const Image image = GradientImage(14, 17, 3);
  const int64_t height = 9, width = 26;
  const Image out = Resize(image, height, width);
  for (int64_t y = 0; y < height; ++y) {
    for (int64_t x = 0; x < width; ++x) {
      const double v = std::clamp((y + 0.5) * 14 / height - 0.5, 0.0, 13.0);
      const double u = std::clamp((x + 0.5) * 17 / width - 0.5, 0.0, 16.0);
      // The gradient is linear, so interpolation computes its value in between.
      EXPECT_NEAR(out.pixels[(y * width + x) * 3 + 1], 60 + 7 * v + 3 * u, 1) << y << " " << x;
    }
  }
}

TEST(Resize, RejectsEmptyImagesAndSizes) {
  EXPECT_THROW(Resize({0, 2, 1, {}}, 1, 1), Error);
  EXPECT_THROW(Resize(GradientImage(2, 2, 1), 0, 5), Error);
  EXPECT_THROW(Resize(GradientImage(2, 2, 1), int64_t{1} << 40, int64_t{1} << 40), Error);
}

}  // namespace
}  // namespace hearth::image
