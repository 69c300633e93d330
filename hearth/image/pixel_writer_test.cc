#include "hearth/image/pixel_writer.h"

#include <gmock/gmock.h>

#include <bit>
#include <cmath>
#include <vector>

namespace hearth::image {
namespace {

using ::testing::ElementsAre;

// Two lines of two pixels whose red, green and blue values count up from 1.
constexpr uint32_t kLines[2][2] = {{0x030201, 0x060504}, {0x090807, 0x0c0b0a}};

template <typename T>
std::vector<T> Written(ImageOptions options) {
  options.height = options.width = 2;
  std::vector<T> image(12);
  const PixelWriter writer(options);
  for (int64_t y = 0; y < 2; ++y) {
    writer.WriteLine(kLines[y], y, reinterpret_cast<std::byte*>(image.data()));
  }
  return image;
}

TEST(PixelWriterTest, WritesPlanesOrInterleavedChannels) {
  EXPECT_THAT(Written<uint8_t>({.layout = PixelLayout::kNchw}),
              ElementsAre(1, 4, 7, 10, 2, 5, 8, 11, 3, 6, 9, 12));
  EXPECT_THAT(Written<uint8_t>({.layout = PixelLayout::kNhwc}),
              ElementsAre(1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12));
}

TEST(PixelWriterTest, NormalizesEachChannelByItsOwnMeanAndDeviation) {
  for (const PixelLayout layout : {PixelLayout::kNchw, PixelLayout::kNhwc}) {
    const auto image = Written<float>({.mean = {{0, 0.5F, 1}},
                                       .std = {{1, 0.5F, 2}},
                                       .type = PixelType::kFloat32,
                                       .layout = layout});
    const size_t step = layout == PixelLayout::kNchw ? 4 : 1;
    EXPECT_FLOAT_EQ(image[0], 1 / 255.0F);
    EXPECT_FLOAT_EQ(image[step], (2 / 255.0F - 0.5F) / 0.5F);
    EXPECT_FLOAT_EQ(image[2 * step], (3 / 255.0F - 1) / 2);
  }
}

// Neither neighbour of the written bfloat16 may be nearer to the float32 value.
TEST(PixelWriterTest, RoundsToTheNearestBfloat16) {
  const auto halves = Written<uint16_t>({.type = PixelType::kBfloat16});
  const auto floats = Written<float>({.type = PixelType::kFloat32});
  for (size_t i = 0; i < halves.size(); ++i) {
    const auto wide = std::bit_cast<float>(uint32_t{halves[i]} << 16);
    EXPECT_NEAR(wide, floats[i], floats[i] / 256) << i;
    const auto below = std::bit_cast<float>(uint32_t{halves[i] - 1U} << 16);
    const auto above = std::bit_cast<float>(uint32_t{halves[i] + 1U} << 16);
    EXPECT_LE(std::abs(wide - floats[i]), std::abs(below - floats[i]));
    EXPECT_LE(std::abs(wide - floats[i]), std::abs(above - floats[i]));
  }
}

TEST(PixelWriterTest, KeepsTheDarkestAndTheBrightestLevel) {
  constexpr uint32_t kPixels[2] = {0x000000, 0xffffff};
  ImageOptions options{.height = 1, .width = 2, .type = PixelType::kFloat32};
  std::vector<float> image(6);
  PixelWriter(options).WriteLine(kPixels, 0, reinterpret_cast<std::byte*>(image.data()));
  EXPECT_THAT(image, ElementsAre(0, 1, 0, 1, 0, 1));
  // The fourth byte of a pixel is not written.
  constexpr uint32_t kWithFourth[2] = {0xff030201, 0x80060504};
  options.type = PixelType::kUint8;
  for (const PixelLayout layout : {PixelLayout::kNchw, PixelLayout::kNhwc}) {
    options.layout = layout;
    std::vector<uint8_t> bytes(7, 99);
    PixelWriter(options).WriteLine(kWithFourth, 0, reinterpret_cast<std::byte*>(bytes.data()));
    EXPECT_THAT(bytes, layout == PixelLayout::kNchw ? ElementsAre(1, 4, 2, 5, 3, 6, 99)
                                                    : ElementsAre(1, 2, 3, 4, 5, 6, 99));
  }
}

// Tests every width from 1 to 39, so that lines consist of full vectors and remainders of any
// length.
TEST(PixelWriterTest, LayoutsHaveTheSameValues) {
  for (int64_t width = 1; width < 40; ++width) {
    std::vector<uint32_t> pixels(width);
    for (int64_t x = 0; x < width; ++x) pixels[x] = static_cast<uint32_t>(x * 0x050301 + 0x102030);
    ImageOptions options{.height = 1,
                         .width = width,
                         .mean = {{0.485F, 0.456F, 0.406F}},
                         .std = {{0.229F, 0.224F, 0.225F}},
                         .type = PixelType::kFloat32};
    std::vector<float> planes(3 * width), interleaved(3 * width);
    PixelWriter(options).WriteLine(pixels.data(), 0, reinterpret_cast<std::byte*>(planes.data()));
    options.layout = PixelLayout::kNhwc;
    PixelWriter(options).WriteLine(pixels.data(), 0,
                                   reinterpret_cast<std::byte*>(interleaved.data()));
    for (int64_t x = 0; x < width; ++x) {
      for (int64_t c = 0; c < 3; ++c) {
        ASSERT_EQ(planes[c * width + x], interleaved[x * 3 + c]) << width << " " << x << " " << c;
      }
    }
  }
}

}  // namespace
}  // namespace hearth::image
