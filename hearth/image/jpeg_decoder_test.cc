#include "hearth/image/jpeg_decoder.h"

#include <gmock/gmock.h>

#include <string>
#include <vector>

#include "hearth/base/testing/error_testing.h"
#include "hearth/image/testing/image_testing.h"
#include "hearth/image/testing/jpeg_testing.h"

namespace hearth::image {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::string ExampleJpeg() { return EncodeJpeg(GradientImage(40, 48, 3), 95); }

// Reads the next `count` lines, which have three channels.
std::vector<uint8_t> Lines(JpegDecoder& decoder, int64_t count) {
  std::vector<uint8_t> pixels(static_cast<size_t>(count * decoder.line_width() * 3));
  for (int64_t i = 0; i < count; ++i) {
    EXPECT_TRUE(decoder.ReadLine(&pixels[static_cast<size_t>(i * decoder.line_width() * 3)]));
  }
  return pixels;
}

TEST(JpegDecoderTest, APartHasThePixelsOfTheWhole) {
  const std::string jpeg = ExampleJpeg();
  JpegDecoder whole, part;
  for (JpegDecoder* each : {&whole, &part}) {
    ASSERT_TRUE(each->ReadHeader(jpeg));
    each->set_color_space(JCS_RGB);
    ASSERT_TRUE(each->Start());
  }
  const std::vector<uint8_t> all = Lines(whole, 40);
  int64_t left = 21;
  ASSERT_TRUE(part.CropColumns(&left, 10));
  EXPECT_LE(left, 21) << "blocks are decoded whole";
  ASSERT_TRUE(part.SkipLines(17));
  EXPECT_EQ(part.next_line(), 17);
  const std::vector<uint8_t> some = Lines(part, 5);
  // The pixels differ slightly, because the outermost columns of a part are upsampled without their
  // neighbours.
  for (int64_t y = 0; y < 5; ++y) {
    for (int64_t x = 21; x < 31; ++x) {
      for (int64_t c = 0; c < 3; ++c) {
        const auto got = some[static_cast<size_t>((y * part.line_width() + x - left) * 3 + c)];
        ASSERT_NEAR(got, all[static_cast<size_t>(((17 + y) * 48 + x) * 3 + c)], 4) << x;
      }
    }
  }
}

TEST(JpegDecoderTest, DecodesAtAFractionOfTheSize) {
  const std::string jpeg = ExampleJpeg();
  for (const int factor : {1, 2, 4, 8}) {
    JpegDecoder decoder;
    ASSERT_TRUE(decoder.ReadHeader(jpeg));
    decoder.set_reduction(factor);
    ASSERT_TRUE(decoder.Start());
    EXPECT_EQ(decoder.line_width(), 48 / factor);
    EXPECT_EQ(decoder.line_count(), 40 / factor);
  }
}

// If data is missing, libjpeg fills it in and continues, so the caller must be able to detect this.
TEST(JpegDecoderTest, NoticesThatTheFileIsCutShort) {
  const std::string jpeg = ExampleJpeg().substr(0, ExampleJpeg().size() / 2);
  JpegDecoder decoder;
  ReadJpegHeader(jpeg, &decoder);
  ASSERT_TRUE(decoder.Start());
  Lines(decoder, 40);
  EXPECT_TRUE(decoder.cut_short());
  const Error error = Thrown([&] { RequireWholeJpeg(jpeg, decoder); });
  EXPECT_EQ(error.code(), ErrorCode::kDataLoss);
  EXPECT_THAT(error.message(), HasSubstr("40 x 48"));
}

TEST(JpegDecoderTest, NamesTheSizeOfAFileThatIsNotAJpeg) {
  for (const std::string& bytes :
       {std::string("GIF89a"), std::string(), ExampleJpeg().substr(0, 20)}) {
    JpegDecoder decoder;
    const Error error = Thrown([&] { ReadJpegHeader(bytes, &decoder); });
    EXPECT_EQ(error.code(), ErrorCode::kDataLoss);
    EXPECT_THAT(error.message(), HasSubstr("JPEG image of " + std::to_string(bytes.size())));
  }
}

// A header of a few bytes that declares 65,500 x 65,500 pixels.
TEST(JpegDecoderTest, RefusesAHugeImageBeforeItsMemoryIsAllocated) {
  std::string jpeg = ExampleJpeg();
  const size_t frame = jpeg.find("\xff\xc0");
  ASSERT_NE(frame, std::string::npos);
  jpeg.replace(frame + 5, 4, "\xff\xdc\xff\xdc");
  JpegDecoder decoder;
  EXPECT_THAT(Thrown([&] { ReadJpegHeader(jpeg, &decoder); }).message(),
              HasSubstr("larger than the limit"));
}

TEST(InkToColorsTest, ConvertsBothWaysOfWritingInk) {
  const uint8_t none[] = {0, 0, 0, 0}, cyan[] = {255, 0, 0, 0}, black[] = {0, 0, 0, 255};
  const auto colors = [](const uint8_t* ink, bool inverted, bool red_first) {
    std::vector<uint8_t> found(3);
    InkToColors(ink, 1, inverted, red_first, found.data());
    return found;
  };
  EXPECT_THAT(colors(none, false, true), ElementsAre(255, 255, 255));
  EXPECT_THAT(colors(cyan, false, true), ElementsAre(0, 255, 255));
  EXPECT_THAT(colors(cyan, false, false), ElementsAre(255, 255, 0));
  EXPECT_THAT(colors(black, false, true), ElementsAre(0, 0, 0));
  EXPECT_THAT(colors(none, true, true), ElementsAre(0, 0, 0)) << "Adobe's 0 is all ink";
}

}  // namespace
}  // namespace hearth::image
