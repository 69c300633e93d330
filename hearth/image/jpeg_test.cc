#include "hearth/image/jpeg.h"

#include <gmock/gmock.h>

#include "hearth/base/error.h"
#include "hearth/image/testing/image_testing.h"
#include "hearth/image/testing/jpeg_testing.h"

namespace hearth::image {
namespace {

using ::testing::HasSubstr;

std::string JpegError(std::string_view bytes, ColorMode mode = ColorMode::kColor) {
  try {
    DecodeJpeg(bytes, mode);
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kDataLoss);
    return error.message();
  }
  return "";
}

void ExpectNearImage(const Image& image, const Image& expected, int tolerance) {
  ASSERT_EQ(image.pixels.size(), expected.pixels.size());
  for (size_t i = 0; i < image.pixels.size(); ++i) {
    ASSERT_NEAR(image.pixels[i], expected.pixels[i], tolerance) << "at " << i;
  }
}

TEST(DecodeJpeg, DecodesToBlueGreenRed) {
  const Image image = GradientImage(8, 12, 3);
  const Image decoded = DecodeJpeg(EncodeJpeg(image, 100), ColorMode::kColor);
  EXPECT_EQ(decoded.height, 8);
  EXPECT_EQ(decoded.width, 12);
  ExpectNearImage(decoded, image, 6);
}

TEST(DecodeJpeg, ConvertsBetweenGrayAndColor) {
  const std::string gray = EncodeJpeg(GradientImage(6, 5, 1));
  EXPECT_EQ(DecodeJpeg(gray, ColorMode::kUnchanged).channels, 1);
  const Image color = DecodeJpeg(gray, ColorMode::kColor);
  ASSERT_EQ(color.channels, 3);
  EXPECT_EQ(color.pixels[0], color.pixels[2]);
  EXPECT_EQ(DecodeJpeg(EncodeJpeg(GradientImage(6, 5, 3)), ColorMode::kGray).channels, 1);
}

TEST(DecodeJpeg, ConvertsCmykToColor) {
  Image white{2, 2, 4, std::vector<uint8_t>(16, 255)};  // 255 means no ink in Adobe's files
  const Image decoded = DecodeJpeg(EncodeJpeg(white, 100), ColorMode::kColor);
  ExpectNearImage(decoded, {2, 2, 3, std::vector<uint8_t>(12, 255)}, 2);
  EXPECT_THAT(JpegError(EncodeJpeg(white), ColorMode::kGray), HasSubstr("convert the file"));
}

TEST(DecodeJpeg, RejectsATruncatedFile) {
  const std::string whole = EncodeJpeg(GradientImage(64, 64, 3));
  EXPECT_THAT(JpegError(whole.substr(0, whole.size() / 2)), HasSubstr("ends too early"));
  EXPECT_THAT(JpegError(whole.substr(0, 30)), HasSubstr("JPEG image of 30 bytes"));
}

// Returns the file with `more` copies of the scan that refines the DC coefficients. The copies do
// not change any pixel.
std::string WithMoreScans(const std::string& jpeg, int more) {
  const std::string refines("\x00\x00\x10", 3);  // coefficients 0 to 0, refined from bit 1 to bit 0
  size_t begin = jpeg.find("\xff\xda");
  const auto parameters = [&] {
    return begin + 2 + static_cast<unsigned char>(jpeg[begin + 3]) - 3;
  };
  while (jpeg.compare(parameters(), 3, refines) != 0) begin = jpeg.find("\xff\xda", begin + 2);
  size_t end = parameters() + 3;
  while (jpeg[end] != '\xff' || jpeg[end + 1] == '\0') ++end;
  std::string bytes = jpeg.substr(0, end);
  while (more-- > 0) bytes += jpeg.substr(begin, end - begin);
  return bytes + jpeg.substr(end);
}

TEST(DecodeJpeg, ReadsProgressiveFiles) {
  const Image image = GradientImage(40, 24, 3);
  const std::string jpeg = ProgressiveJpeg(image);
  const Image baseline = DecodeJpeg(EncodeJpeg(image, 100), ColorMode::kColor);
  ExpectNearImage(DecodeJpeg(jpeg, ColorMode::kColor), baseline, 1);
  ExpectNearImage(DecodeJpeg(WithMoreScans(jpeg, 20), ColorMode::kColor), baseline, 1);
}

TEST(DecodeJpeg, RejectsMoreScansThanAnyImageHas) {
  const std::string small = ProgressiveJpeg(GradientImage(8, 8, 1));
  EXPECT_EQ(JpegError(WithMoreScans(small, 400)), "");
  EXPECT_THAT(
      JpegError(WithMoreScans(small, 600)),
      HasSubstr("JPEG image of 8 x 8 pixels cannot be decoded: it has more than 500 scans"));
  // For a large image, the limit is lower.
  const Image large{2048, 4096, 1, std::vector<uint8_t>(2048 * 4096, 100)};
  EXPECT_THAT(JpegError(WithMoreScans(ProgressiveJpeg(large), 300)),
              HasSubstr("it has more than 256 scans"));
}

TEST(DecodeJpeg, RejectsAHugeImageBeforeAllocating) {
  std::string bytes = EncodeJpeg(GradientImage(8, 8, 3));
  const size_t frame = bytes.find("\xff\xc0");  // marker, length, precision, height, width
  ASSERT_NE(frame, std::string::npos);
  for (size_t i = 5; i < 9; ++i) bytes[frame + i] = '\xfe';
  EXPECT_EQ(JpegError(bytes),
            "a JPEG image of 65278 x 65278 pixels is larger than the limit of 67108864 pixels");
}

TEST(DecodeJpeg, RejectsEveryTruncation) {
  const std::string whole = EncodeJpeg(GradientImage(16, 16, 3));
  ASSERT_EQ(JpegError(whole), "");
  for (size_t size = 0; size + 2 < whole.size(); ++size) {
    EXPECT_NE(JpegError(std::string_view(whole).substr(0, size)), "") << size << " bytes";
  }
}

TEST(DecodeJpeg, DecodesSidesThatAreNoMultipleOfABlock) {
  for (const int64_t side : {1, 7, 8, 9, 15, 16, 17, 31, 33}) {
    const Image image = GradientImage(side, 3, 1);
    const Image decoded = DecodeJpeg(EncodeJpeg(image, 100), ColorMode::kUnchanged);
    EXPECT_EQ(decoded.height, side);
    EXPECT_EQ(decoded.width, 3);
    EXPECT_EQ(decoded.pixels.size(), image.pixels.size());
  }
}

}  // namespace
}  // namespace hearth::image
