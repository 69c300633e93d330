#include "hearth/image/decode.h"

#include <gmock/gmock.h>

#include <random>

#include "hearth/base/error.h"
#include "hearth/image/testing/image_testing.h"

namespace hearth::image {
namespace {

std::string ImageError(std::string_view bytes) {
  try {
    DecodeImage(bytes, ColorMode::kColor);
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kDataLoss);
    return error.message();
  }
  return "";
}

TEST(DecodeImage, DetectsTheFormatByTheFirstBytes) {
  const Image image = GradientImage(5, 4, 3);
  EXPECT_EQ(DecodeImage(EncodePng(image), ColorMode::kColor).pixels, image.pixels);
  EXPECT_EQ(DecodeImage(EncodeJpeg(image), ColorMode::kColor).width, 4);
}

TEST(DecodeImage, ShowsTheFirstUnknownBytes) {
  EXPECT_EQ(ImageError("GIF89a and more"),
            "15 bytes that begin with [47 49 46 38] are neither a JPEG nor a PNG image");
  EXPECT_EQ(ImageError(""), "0 bytes that begin with [] are neither a JPEG nor a PNG image");
}

// Damaged bytes must result in an error or an image, never in a crash or a leak. This test also
// runs under sanitizers.
TEST(DecodeImage, SurvivesRandomDamage) {
  std::mt19937 random(7);
  const Image image = GradientImage(16, 16, 3);
  for (const std::string& good : {EncodePng(image), EncodeJpeg(image)}) {
    for (int round = 0; round < 500; ++round) {
      std::string bad = good;
      for (int i = 0; i < 3; ++i)
        bad[4 + random() % (bad.size() - 4)] = static_cast<char>(random());
      if (round % 5 == 0) bad.resize(random() % bad.size());
      try {
        DecodeImage(bad, static_cast<ColorMode>(round % 3));
      } catch (const Error& error) {
        ASSERT_EQ(error.code(), ErrorCode::kDataLoss);
      }
    }
  }
}

}  // namespace
}  // namespace hearth::image
