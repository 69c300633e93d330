#include "hearth/image/encode.h"

#include <gmock/gmock.h>

#include <cstdlib>

#include "hearth/base/error.h"
#include "hearth/image/decode.h"
#include "hearth/image/testing/image_testing.h"

namespace hearth::image {
namespace {

using testing::HasSubstr;
using testing::ThrowsMessage;

TEST(EncodeImage, ToPngKeepsEveryPixel) {
  for (const int64_t channels : {1, 3, 4}) {
    const Image image = GradientImage(6, 5, channels);
    const Image decoded = DecodeImage(EncodeImage(image, "png"), ColorMode::kUnchanged);
    EXPECT_EQ(decoded.channels, channels);
    EXPECT_EQ(decoded.pixels, image.pixels);
  }
}

TEST(EncodeImage, ToJpegKeepsPixelsApproximately) {
  const Image image = GradientImage(16, 16, 1);
  for (const char* type : {"jpg", ".JPEG"}) {
    const Image decoded = DecodeImage(EncodeImage(image, type), ColorMode::kUnchanged);
    ASSERT_EQ(decoded.pixels.size(), image.pixels.size());
    for (size_t i = 0; i < image.pixels.size(); ++i) {
      EXPECT_NEAR(decoded.pixels[i], image.pixels[i], 8);
    }
  }
}

TEST(EncodeImage, RejectsUnsupportedImages) {
  EXPECT_THAT([] { EncodeImage(GradientImage(2, 2, 3), "gif"); },
              ThrowsMessage<Error>(HasSubstr("encoded as 'gif'; use jpg or png")));
  EXPECT_THAT([] { EncodeJpeg(GradientImage(2, 2, 2)); },
              ThrowsMessage<Error>(HasSubstr("2 channels cannot be a JPEG file")));
  EXPECT_THAT([] { EncodeJpeg(GradientImage(1, 70000, 1)); },
              ThrowsMessage<Error>(HasSubstr("cannot write a JPEG file of 1 x 70000 pixels")));
}

TEST(EncodeImage, RejectsImagesWithoutPixelsOrWithOtherChannels) {
  for (const Image& image : {Image{0, 2, 1, {}}, Image{2, 0, 3, {}}, Image{-1, 2, 1, {}},
                             GradientImage(2, 2, 2), GradientImage(2, 2, 5), Image{2, 2, 0, {}}}) {
    for (const char* type : {"png", "jpg"}) {
      try {
        EncodeImage(image, type);
        ADD_FAILURE() << image.height << " x " << image.width << " x " << image.channels;
      } catch (const Error& error) {
        EXPECT_EQ(error.code(), ErrorCode::kInvalidArgument);
        EXPECT_THAT(error.message(),
                    HasSubstr(fmt::format("{} x {} pixels and {} channels cannot be a",
                                          image.height, image.width, image.channels)));
      }
    }
  }
}

TEST(EncodeImage, ATypeHasAtMostOneDot) {
  for (const char* type : {"", ".", "..png", "png.", "jpe", " png"}) {
    EXPECT_THAT([&] { EncodeImage(GradientImage(2, 2, 3), type); },
                ThrowsMessage<Error>(HasSubstr(fmt::format("encoded as '{}'", type))));
  }
  EXPECT_EQ(EncodeImage(GradientImage(2, 2, 3), ".PnG"), EncodePng(GradientImage(2, 2, 3)));
}

TEST(EncodeJpeg, ALowerQualityTakesFewerBytes) {
  const Image image = GradientImage(64, 64, 3);
  EXPECT_LT(EncodeJpeg(image, 1).size(), EncodeJpeg(image, 50).size());
  EXPECT_LT(EncodeJpeg(image, 50).size(), EncodeJpeg(image, 100).size());
}

}  // namespace
}  // namespace hearth::image
