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
  // The output centers are at 0.25, 0.75, 1.25 and 1.75; the two input pixels have their centers at
  // 0.5 and 1.5.
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
      // The image is a linear gradient, so interpolation must compute its exact value between
      // pixels.
      EXPECT_NEAR(out.pixels[(y * width + x) * 3 + 1], 60 + 7 * v + 3 * u, 1) << y << " " << x;
    }
  }
}

TEST(Resize, RejectsEmptyImagesAndSizes) {
  EXPECT_THROW(Resize({0, 2, 1, {}}, 1, 1), Error);
  EXPECT_THROW(Resize(GradientImage(2, 2, 1), 0, 5), Error);
  EXPECT_THROW(Resize(GradientImage(2, 2, 1), int64_t{1} << 40, int64_t{1} << 40), Error);
}

TEST(Resize, UniformImagesKeepTheirLevel) {
  for (const int level : {0, 1, 127, 254, 255}) {
    for (const auto& [height, width] :
         {std::pair<int64_t, int64_t>{1, 1}, {1, 50}, {50, 1}, {7, 3}}) {
      const Image image{3, 5, 1, std::vector<uint8_t>(15, static_cast<uint8_t>(level))};
      const Image out = Resize(image, height, width);
      EXPECT_EQ(out.pixels, std::vector<uint8_t>(height * width, static_cast<uint8_t>(level)))
          << level << " in " << height << " x " << width;
    }
  }
}

TEST(Resize, OnePixelBecomesEveryPixel) {
  const Image out = Resize({1, 1, 4, {1, 2, 3, 4}}, 2, 3);
  EXPECT_EQ(out.channels, 4);
  for (size_t i = 0; i < out.pixels.size(); ++i) EXPECT_EQ(out.pixels[i], i % 4 + 1);
}

TEST(Resize, NamesTheSizeThatItRejects) {
  for (const auto& [height, width] : {std::pair<int64_t, int64_t>{0, 1},
                                      {1, 0},
                                      {-1, 1},
                                      {INT64_MAX, INT64_MAX},
                                      {kMaxImagePixels + 1, 1},
                                      {1, kMaxImagePixels + 1}}) {
    try {
      Resize(GradientImage(2, 2, 1), height, width);
      ADD_FAILURE() << height << " x " << width;
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::kInvalidArgument);
      EXPECT_EQ(error.message(),
                fmt::format("an image cannot be resized to {} x {} pixels", height, width));
    }
  }
}

}  // namespace
}  // namespace hearth::image
