#include "hearth/caffe/data/image_reader.h"

#include <gmock/gmock.h>

#include "hearth/base/error.h"
#include "hearth/caffe/proto/text_reader.h"
#include "hearth/image/testing/image_testing.h"

namespace hearth::caffe {
namespace {

using ::testing::HasSubstr;

ImageReader Reader(ImageSize size, const std::string& transform = "", bool resize = false) {
  TransformationParameter param;
  ParseText(transform, "test", &param);
  return ImageReader(param, TEST, size, resize);
}

template <typename Function>
std::string ReaderError(Function read) {
  try {
    read();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kDataLoss);
    return error.message();
  }
  return "";
}

TEST(ImageReader, ConvertsEncodedImagesToPlanes) {
  const image::Image image = image::GradientImage(4, 5, 3);
  std::vector<float> out(60);
  Reader({3, 4, 5}, "scale: 0.5").ReadEncoded(image::EncodePng(image), 0, out.data());
  for (int64_t c = 0; c < 3; ++c) {
    for (int64_t i = 0; i < 20; ++i) {
      ASSERT_EQ(out[c * 20 + i], 0.5f * image.pixels[i * 3 + c]);
    }
  }
}

TEST(ImageReader, ReadsRawBytesAndFloatsAsPlanes) {
  std::vector<float> out(12);
  const std::string bytes = "\x01\x02\x03\x04\x05\x06\x07\x08\x09\x0a\xfe\xff";
  Reader({3, 2, 2}).ReadRaw(bytes, {3, 2, 2}, 0, out.data());
  EXPECT_EQ(out[0], 1);
  EXPECT_EQ(out[11], 255);
  const std::vector<float> values(12, 0.25f);
  Reader({3, 2, 2}, "mean_value: 1").ReadFloats(values, {3, 2, 2}, 0, out.data());
  EXPECT_EQ(out[5], -0.75f);
}

TEST(ImageReader, ResizesOnRequest) {
  std::vector<float> out(4);
  const std::string bytes(16, '\x05');
  Reader({1, 2, 2}, "", true).ReadRaw(bytes, {1, 4, 4}, 0, out.data());
  EXPECT_THAT(out, ::testing::Each(5));
  Reader({1, 2, 2}, "", true)
      .ReadEncoded(image::EncodePng(image::GradientImage(7, 3, 3)), 0, out.data());
}

TEST(ImageReader, AcceptsAnySizeThatTheCropFitsInto) {
  const ImageReader reader = Reader({1, 3, 3}, "crop_size: 3");
  EXPECT_EQ(reader.output(), (ImageSize{1, 3, 3}));
  std::vector<float> out(9);
  const image::Image image = image::GradientImage(6, 5, 1);
  reader.ReadEncoded(image::EncodePng(image), 0, out.data());
  EXPECT_EQ(out[0], image.pixels[1 * 5 + 1]);
  EXPECT_THAT(ReaderError([&] {
                reader.ReadEncoded(image::EncodePng(image::GradientImage(2, 5, 1)), 0, out.data());
              }),
              "an image of 2 x 5 pixels is smaller than crop_size 3");
}

TEST(ImageReader, RejectsImagesOfAnotherSize) {
  std::vector<float> out(100);
  const ImageReader reader = Reader({1, 4, 4});
  EXPECT_THAT(ReaderError([&] {
                reader.ReadEncoded(image::EncodePng(image::GradientImage(4, 5, 1)), 0, out.data());
              }),
              "an image of 1 x 4 x 5 does not match the layer's 1 x 4 x 4");
  EXPECT_THAT(ReaderError([&] {
                reader.ReadRaw("abc", {1, 4, 4}, 0, out.data());
              }),
              "3 bytes are not an image of 1 x 4 x 4");
  EXPECT_THAT(ReaderError([&] {
                reader.ReadFloats({}, {1, 4, 4}, 0, out.data());
              }),
              HasSubstr("0 numbers are not an image"));
}

TEST(ImageReader, DependsOnTheSeedAlone) {
  const ImageReader reader = Reader({1, 4, 4}, "mirror: true");
  const std::string bytes = image::EncodePng(image::GradientImage(4, 4, 1));
  std::vector<float> first(16), second(16);
  int changes = 0;
  for (uint64_t seed = 0; seed < 40; ++seed) {
    std::vector<float> previous = first;
    reader.ReadEncoded(bytes, seed, first.data());
    reader.ReadEncoded(bytes, seed, second.data());
    ASSERT_EQ(first, second);
    changes += first != previous;
  }
  EXPECT_GT(changes, 5);
}

TEST(ImageReader, RequiresAllDimensions) { EXPECT_THROW(Reader({1, 0, 4}), Error); }

}  // namespace
}  // namespace hearth::caffe
