#include "hearth/image/image_transform.h"

#include <gmock/gmock.h>

#include <bit>
#include <cmath>
#include <cstring>
#include <random>

#include "hearth/base/error.h"
#include "hearth/image/decode.h"
#include "hearth/image/testing/image_testing.h"
#include "hearth/image/testing/jpeg_testing.h"

namespace hearth::image {
namespace {

using ::testing::ElementsAre;
using ::testing::FloatEq;
using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

// Options with which only the order of the channels changes (to red first), unless a test sets more
// of them.
ImageOptions Plain(int64_t height, int64_t width) {
  ImageOptions options;
  options.kind = ImageKind::kAny;
  options.crop = CropMode::kNone;
  options.height = height;
  options.width = width;
  options.flip = false;
  options.layout = PixelLayout::kNhwc;
  return options;
}

template <typename T = uint8_t>
std::vector<T> Applied(const ImageOptions& options, std::string_view file, uint64_t seed = 0) {
  const ImageTransform transform(options);
  std::vector<T> out(transform.bytes_per_image() / sizeof(T));
  transform.Apply(file, seed, reinterpret_cast<std::byte*>(out.data()));
  return out;
}

std::vector<uint8_t> RedFirst(const Image& bgr) {
  std::vector<uint8_t> rgb = bgr.pixels;
  for (size_t i = 0; i < rgb.size(); i += 3) std::swap(rgb[i], rgb[i + 2]);
  return rgb;
}

std::string ErrorOf(std::string_view file, uint64_t seed = 0) {
  try {
    Applied(ImageOptions{}, file, seed);
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kDataLoss);
    return error.message();
  }
  return "";
}

TEST(ImageTransform, DecodesToTheSamePixelsAsCaffesLayers) {
  const Image image = GradientImage(37, 51, 3);
  const std::string files[] = {EncodeJpeg(image),
                               ProgressiveJpeg(image),
                               EncodePng(image),
                               EncodeJpeg(GradientImage(37, 51, 1)),
                               EncodeJpeg(GradientImage(37, 51, 4)),
                               EncodePng(GradientImage(37, 51, 1)),
                               EncodePng(GradientImage(37, 51, 4))};
  for (const std::string& file : files) {
    EXPECT_EQ(Applied(Plain(37, 51), file), RedFirst(DecodeImage(file, ColorMode::kColor)))
        << "file " << &file - files;
  }
}

TEST(ImageTransform, DependsOnTheSeed) {
  const std::string file = EncodeJpeg(GradientImage(300, 400, 3));
  EXPECT_EQ(Applied(ImageOptions{}, file, 7), Applied(ImageOptions{}, file, 7));
  EXPECT_NE(Applied(ImageOptions{}, file, 7), Applied(ImageOptions{}, file, 8));
}

TEST(ImageTransform, WritesPlanesOrInterleavedPixels) {
  ImageOptions options = Plain(1, 2);
  const std::string file = EncodePng({1, 2, 3, {30, 20, 10, 60, 50, 40}});
  EXPECT_THAT(Applied(options, file), ElementsAre(10, 20, 30, 40, 50, 60));
  EXPECT_THAT(ImageTransform(options).shape(), ElementsAre(1, 2, 3));
  options.layout = PixelLayout::kNchw;
  EXPECT_THAT(Applied(options, file), ElementsAre(10, 40, 20, 50, 30, 60));
  EXPECT_THAT(ImageTransform(options).shape(), ElementsAre(3, 1, 2));
}

TEST(ImageTransform, NormalizesToFloatAndBfloat16) {
  ImageOptions options = Plain(1, 1);
  const std::string file = EncodePng({1, 1, 3, {255, 51, 0}});
  options.type = PixelType::kFloat32;
  EXPECT_THAT(Applied<float>(options, file), ElementsAre(FloatEq(0), FloatEq(0.2f), FloatEq(1)));
  options.mean = {0.5f, 0.1f, 0.f};
  options.std = {0.25f, 0.5f, 2.f};
  for (const auto layout : {PixelLayout::kNchw, PixelLayout::kNhwc}) {
    options.layout = layout;
    options.type = PixelType::kFloat32;
    const std::vector<float> floats = Applied<float>(options, file);
    EXPECT_NEAR(floats[0], -2, 1e-6);
    EXPECT_NEAR(floats[1], 0.2, 1e-6);
    EXPECT_NEAR(floats[2], 0.5, 1e-6);
    options.type = PixelType::kBfloat16;
    const std::vector<uint16_t> halves = Applied<uint16_t>(options, file);
    for (int c = 0; c < 3; ++c) {
      const float rounded = std::bit_cast<float>(uint32_t{halves[c]} << 16);
      EXPECT_NEAR(rounded, floats[c], std::abs(floats[c]) / 256) << c;
    }
    EXPECT_EQ(halves[1], 0x3e4d);  // 0.2 is rounded to the nearest value, from 0x3e4ccccd
  }
}

TEST(ImageTransform, FlipsHalfOfTheImages) {
  ImageOptions options = Plain(1, 2);
  options.flip = true;
  const std::string file = EncodePng({1, 2, 3, {1, 1, 1, 9, 9, 9}});
  int flipped = 0;
  for (uint64_t seed = 0; seed < 400; ++seed) flipped += Applied(options, file, seed)[0] == 9;
  EXPECT_NEAR(flipped, 200, 40);
}

TEST(ImageTransform, DecodesLargeImagesReducedByDefault) {
  const std::string file = EncodeJpeg(GradientImage(64, 96, 3), 100);
  ImageOptions options = Plain(16, 24);
  const std::vector<uint8_t> reduced = Applied(options, file);
  options.scaled_decoding = false;
  EXPECT_NE(reduced, Applied(options, file));
  // The crop is less than 2.5 times as large as the output, so the image is not reduced.
  options = Plain(26, 38);
  const std::vector<uint8_t> whole = Applied(options, file);
  options.scaled_decoding = false;
  EXPECT_EQ(whole, Applied(options, file));
}

TEST(ImageTransform, AcceptsImagesOfAnySize) {
  for (const int64_t height : {1, 2, 17, 700}) {
    for (const int64_t width : {1, 3, 900}) {
      for (const auto crop : {CropMode::kNone, CropMode::kRandom, CropMode::kCenter}) {
        ImageOptions options;
        options.kind = ImageKind::kAny;
        options.crop = crop;
        const Image flat{height, width, 3, std::vector<uint8_t>(height * width * 3, 90)};
        for (const std::string& file : {EncodePng(flat), EncodeJpeg(flat, 100)}) {
          for (const uint8_t value : Applied(options, file, height + width)) {
            ASSERT_NEAR(value, 90, 1) << height << " x " << width;
          }
        }
      }
    }
  }
}

TEST(ImageTransform, RejectsIncompleteImagesForEverySeed) {
  const std::string whole = EncodeJpeg(GradientImage(300, 300, 3));
  for (uint64_t seed = 0; seed < 50; ++seed) {
    ASSERT_THAT(ErrorOf(whole.substr(0, whole.size() - 10), seed), HasSubstr("ends too early"));
  }
  EXPECT_EQ(ErrorOf(whole), "");
  EXPECT_THAT(ErrorOf(""), HasSubstr("0 bytes"));
  EXPECT_THAT(ErrorOf("GIF89a"), HasSubstr("neither a JPEG nor a PNG"));
  EXPECT_THAT(ErrorOf(whole.substr(0, 20)), HasSubstr("JPEG image of 20 bytes"));
}

TEST(ImageTransform, RejectsAHugeHeaderBeforeAllocating) {
  std::string file = EncodeJpeg(GradientImage(8, 8, 3));
  const size_t frame = file.find("\xff\xc0");  // marker, length, precision, height, width
  file[frame + 5] = file[frame + 7] = '\xea';
  file[frame + 6] = file[frame + 8] = '\x60';
  EXPECT_EQ(ErrorOf(file),
            "a JPEG image of 60000 x 60000 pixels is larger than the limit of "
            "67108864 pixels");
}

TEST(ImageTransform, RejectsAnImageWithASideLongerThanAnyJpegs) {
  ImageOptions options;
  options.kind = ImageKind::kAny;
  const Image line{1, 65501, 1, std::vector<uint8_t>(65501)};
  EXPECT_THAT(
      [&] { Applied(options, EncodePng(line)); },
      ThrowsMessage<Error>(
          "an image of 1 x 65501 pixels is too large: height and width may be at most 65500"));
}

// Damaged bytes must result in an error or pixels, never in a crash. This test also runs under
// sanitizers.
TEST(ImageTransform, SurvivesRandomDamage) {
  std::mt19937 random(7);
  const Image image = GradientImage(61, 83, 3);
  ImageOptions options;
  options.kind = ImageKind::kAny;
  options.height = options.width = 16;
  for (const std::string& good : {EncodePng(image), EncodeJpeg(image), ProgressiveJpeg(image),
                                  SampledJpeg(image, 1, 2), EncodeJpeg(GradientImage(61, 83, 4))}) {
    for (int round = 0; round < 400; ++round) {
      std::string bad = good;
      for (int i = 0; i < 3; ++i) {
        bad[4 + random() % (bad.size() - 4)] = static_cast<char>(random());
      }
      if (round % 5 == 0) bad.resize(random() % bad.size());
      try {
        Applied(options, bad, round);
      } catch (const Error& error) {
        ASSERT_EQ(error.code(), ErrorCode::kDataLoss) << error.message();
      }
    }
  }
}

TEST(ImageTransform, MarksImagesThatCannotBeDecoded) {
  const std::string good = EncodeJpeg(GradientImage(50, 60, 3));
  ImageOptions options;
  options.height = options.width = 20;
  const ImageTransform transform(options);
  const std::string cut = good.substr(0, 300);
  const std::vector<std::string_view> files = {good, "nothing", good, cut, good};
  const std::vector<uint64_t> seeds = {1, 2, 3, 4, 5};
  const size_t size = transform.bytes_per_image();
  std::vector<uint8_t> expected(files.size() * size, 0);
  for (const size_t i : {0, 2, 4}) {
    transform.Apply(good, seeds[i], reinterpret_cast<std::byte*>(&expected[i * size]));
  }
  for (const int threads : {1, 2, 9}) {
    std::vector<uint8_t> out(files.size() * size, 77);
    std::vector<bool> failed;
    transform.ApplyAll(files, seeds, threads, reinterpret_cast<std::byte*>(out.data()), &failed);
    EXPECT_THAT(failed, ElementsAre(false, true, false, true, false));
    EXPECT_EQ(out, expected);
  }
}

TEST(ImageTransform, RejectsInvalidOptions) {
  const auto error = [](auto change) {
    return [change] {
      ImageOptions options;
      change(options);
      const ImageTransform transform(options);
    };
  };
  EXPECT_THAT(
      error([](ImageOptions& o) { o.height = 0; }),
      ThrowsMessage<Error>(
          "cannot resize images to 0 x 224 pixels: height and width must be from 1 to 16384"));
  EXPECT_THAT(error([](ImageOptions& o) {
                o.mean = {0, 0, 0};
              }),
              ThrowsMessage<Error>(HasSubstr("use float32 or bfloat16")));
  EXPECT_THAT(error([](ImageOptions& o) {
                o.type = PixelType::kFloat32;
                o.std = {1, 0, 1};
              }),
              ThrowsMessage<Error>(HasSubstr("std 0 cannot normalize channel 1")));
}

}  // namespace
}  // namespace hearth::image
