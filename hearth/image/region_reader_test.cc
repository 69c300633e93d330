#include "hearth/image/region_reader.h"

#include <gmock/gmock.h>

#include <cstdlib>
#include <random>

#include "hearth/base/error.h"
#include "hearth/image/decode.h"
#include "hearth/image/testing/image_testing.h"
#include "hearth/image/testing/jpeg_testing.h"

namespace hearth::image {
namespace {

using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

// An image with sharp edges in brightness and colors, so that wrong neighbouring pixels are visible
// in the result.
Image NoiseImage(int64_t height, int64_t width, int64_t channels) {
  std::mt19937 random(11);
  Image image{height, width, channels, std::vector<uint8_t>(height * width * channels)};
  for (uint8_t& value : image.pixels) value = static_cast<uint8_t>(random() % 2 * 200 + 20);
  return image;
}

std::vector<uint8_t> Part(const Image& bgr, const Region& region) {
  std::vector<uint8_t> rgb;
  for (int64_t y = region.top; y < region.top + region.height; ++y) {
    for (int64_t x = region.left; x < region.left + region.width; ++x) {
      for (int c = 2; c >= 0; --c) rgb.push_back(bgr.pixels[(y * bgr.width + x) * 3 + c]);
    }
  }
  return rgb;
}

std::vector<uint8_t> Read(std::string_view bytes, const Region& region, int factor = 1) {
  ReaderMemory memory;
  const auto reader = OpenRegion(bytes, ImageKind::kAny, &memory);
  reader->Begin(region, factor, 16);
  std::vector<uint8_t> rgb;
  for (int64_t y = 0; y < region.height; ++y) {
    const uint8_t* line = reader->NextLine();
    rgb.insert(rgb.end(), line, line + region.width * 3);
  }
  reader->Finish();
  return rgb;
}

Region RandomRegion(int64_t height, int64_t width, std::mt19937& random) {
  Region region;
  region.height = 1 + random() % height;
  region.width = 1 + random() % width;
  region.top = random() % (height - region.height + 1);
  region.left = random() % (width - region.width + 1);
  return region;
}

TEST(RegionReader, ReadsThePixelsOfTheWholeImage) {
  std::mt19937 random(2);
  const Image image = NoiseImage(91, 123, 3);
  const std::string files[] = {EncodeJpeg(image),
                               EncodeJpeg(image, 30),
                               ProgressiveJpeg(image),
                               SampledJpeg(image, 1, 1),
                               SampledJpeg(image, 2, 1),
                               SampledJpeg(image, 1, 2),
                               SampledJpeg(image, 4, 1),
                               EncodeJpeg(NoiseImage(91, 123, 1)),
                               EncodeJpeg(NoiseImage(91, 123, 4)),
                               EncodePng(image)};
  for (const std::string& file : files) {
    const Image whole = DecodeImage(file, ColorMode::kColor);
    for (int round = 0; round < 100; ++round) {
      const Region region = RandomRegion(91, 123, random);
      ASSERT_EQ(Read(file, region), Part(whole, region))
          << "file " << &file - files << ": " << region.top << " " << region.left << " "
          << region.height << " " << region.width;
    }
  }
}

TEST(RegionReader, ReadsTheSamePartOfAReducedImage) {
  std::mt19937 random(4);
  const Image image = NoiseImage(181, 245, 3);
  for (const std::string& file : {EncodeJpeg(image), ProgressiveJpeg(image)}) {
    for (const int factor : {2, 4, 8}) {
      const int64_t height = (181 + factor - 1) / factor, width = (245 + factor - 1) / factor;
      const Image whole{height, width, 3, Read(file, {0, 0, height, width}, factor)};
      for (int round = 0; round < 30; ++round) {
        const Region region = RandomRegion(height, width, random);
        std::vector<uint8_t> expected;
        for (int64_t y = region.top; y < region.top + region.height; ++y) {
          const uint8_t* line = &whole.pixels[(y * width + region.left) * 3];
          expected.insert(expected.end(), line, line + region.width * 3);
        }
        ASSERT_EQ(Read(file, region, factor), expected) << factor;
      }
    }
  }
}

TEST(RegionReader, RejectsAFileThatIsTruncatedBelowTheRegion) {
  const std::string whole = EncodeJpeg(NoiseImage(200, 64, 3));
  for (const size_t kept : {whole.size() - 2, whole.size() / 2}) {
    EXPECT_THAT(
        [&] {
          Read(whole.substr(0, kept), {0, 0, 8, 8});
        },
        ThrowsMessage<Error>(HasSubstr("ends too early")))
        << kept;
  }
  EXPECT_EQ(Read(whole + std::string(40, '\0'), {0, 0, 8, 8}), Read(whole, {0, 0, 8, 8}));
}

TEST(OpenRegion, RejectsAnotherKindThanRequested) {
  ReaderMemory memory;
  const std::string png = EncodePng(GradientImage(2, 2, 3));
  EXPECT_THAT([&] { OpenRegion(png, ImageKind::kJpeg, &memory); },
              ThrowsMessage<Error>(HasSubstr("is a PNG file, but kind is jpeg: use kind any")));
  EXPECT_EQ(OpenRegion(png, ImageKind::kPng, &memory)->height(), 2);
}

}  // namespace
}  // namespace hearth::image
