#include "hearth/caffe/image/jpeg.h"

#include <gmock/gmock.h>

#include "hearth/base/error.h"
#include "hearth/caffe/image/test_images.h"

namespace hearth::caffe {
namespace {

using ::testing::HasSubstr;

std::string DecodeError(std::string_view bytes, ColorMode mode = ColorMode::kColor) {
  try {
    DecodeJpeg(bytes, mode);
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kDataLoss);
    return error.message();
  }
  return "";
}

void ExpectNear(const Image& image, const Image& expected, int tolerance) {
  ASSERT_EQ(image.pixels.size(), expected.pixels.size());
  for (size_t i = 0; i < image.pixels.size(); ++i) {
    ASSERT_NEAR(image.pixels[i], expected.pixels[i], tolerance) << "at " << i;
  }
}

TEST(DecodeJpeg, GivesBlueGreenRed) {
  const Image image = GradientImage(8, 12, 3);
  const Image decoded = DecodeJpeg(EncodeJpeg(image, 100), ColorMode::kColor);
  EXPECT_EQ(decoded.height, 8);
  EXPECT_EQ(decoded.width, 12);
  ExpectNear(decoded, image, 6);
}

TEST(DecodeJpeg, ConvertsBetweenGreyAndColour) {
  const std::string gray = EncodeJpeg(GradientImage(6, 5, 1));
  EXPECT_EQ(DecodeJpeg(gray, ColorMode::kUnchanged).channels, 1);
  const Image color = DecodeJpeg(gray, ColorMode::kColor);
  ASSERT_EQ(color.channels, 3);
  EXPECT_EQ(color.pixels[0], color.pixels[2]);
  EXPECT_EQ(DecodeJpeg(EncodeJpeg(GradientImage(6, 5, 3)), ColorMode::kGray).channels, 1);
}

TEST(DecodeJpeg, TurnsCmykIntoColour) {
  Image white{2, 2, 4, std::vector<uint8_t>(16, 255)};  // no ink, as Adobe writes it
  const Image decoded = DecodeJpeg(EncodeJpeg(white, 100), ColorMode::kColor);
  ExpectNear(decoded, {2, 2, 3, std::vector<uint8_t>(12, 255)}, 2);
  EXPECT_THAT(DecodeError(EncodeJpeg(white), ColorMode::kGray), HasSubstr("convert the file"));
}

TEST(DecodeJpeg, RefusesAFileThatEndsEarly) {
  const std::string whole = EncodeJpeg(GradientImage(64, 64, 3));
  EXPECT_THAT(DecodeError(whole.substr(0, whole.size() / 2)), HasSubstr("ends too early"));
  EXPECT_THAT(DecodeError(whole.substr(0, 30)), HasSubstr("JPEG image of 30 bytes"));
}

TEST(DecodeJpeg, RefusesAHugePictureBeforeTakingMemory) {
  std::string bytes = EncodeJpeg(GradientImage(8, 8, 3));
  const size_t frame = bytes.find("\xff\xc0");  // marker, length, precision, height, width
  ASSERT_NE(frame, std::string::npos);
  for (size_t i = 5; i < 9; ++i) bytes[frame + i] = '\xfe';
  EXPECT_EQ(DecodeError(bytes),
            "JPEG image of 65278 x 65278 pixels is larger than the limit of 67108864 pixels");
}

}  // namespace
}  // namespace hearth::caffe
