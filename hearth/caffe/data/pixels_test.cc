#include "hearth/caffe/data/pixels.h"

#include <gmock/gmock.h>

#include <string>
#include <tuple>
#include <vector>

#include "hearth/base/testing/error_testing.h"
#include "hearth/image/testing/image_testing.h"

namespace hearth::caffe {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

Datum UnencodedDatum(int channels, int height, int width) {
  Datum datum;
  datum.set_channels(channels);
  datum.set_height(height);
  datum.set_width(width);
  return datum;
}

std::vector<float> Transformed(const Pixels& pixels) {
  const DataTransformer transformer({}, TEST);
  std::vector<float> values(static_cast<size_t>(pixels.size().count()));
  pixels.Transform(transformer, 1, values.data());
  return values;
}

TEST(PixelsTest, ADatumOfBytesAndOneOfFloatsGiveTheSameValues) {
  Datum bytes = UnencodedDatum(1, 1, 3), floats = UnencodedDatum(1, 1, 3);
  bytes.set_data(std::string("\x01\xff\x00", 3));
  for (const float value : {1.0F, 255.0F, 0.0F}) floats.add_float_data(value);
  EXPECT_THAT(Transformed(Pixels(bytes, image::ColorMode::kColor)), ElementsAre(1, 255, 0));
  EXPECT_THAT(Transformed(Pixels(floats, image::ColorMode::kColor)), ElementsAre(1, 255, 0));
}

TEST(PixelsTest, AnEncodedDatumHasTheSizeOfItsImage) {
  Datum datum = UnencodedDatum(0, 0, 0);
  datum.set_encoded(true);
  datum.set_data(image::EncodePng(image::GradientImage(4, 6, 3)));
  EXPECT_EQ(Pixels(datum, image::ColorMode::kColor).size().count(), 3 * 4 * 6);
}

// Sizes from a file must neither overflow nor refer to memory outside the values.
TEST(PixelsTest, ADatumWhoseSizeIsNotThatOfItsValuesIsRejected) {
  for (const auto& [channels, height, width] :
       {std::tuple{1, 1, 4}, {0, 1, 3}, {-1, -1, 3}, {1 << 30, 1 << 30, 1 << 30}}) {
    Datum datum = UnencodedDatum(channels, height, width);
    datum.set_data("abc");
    const Error error = Thrown([&] { Pixels pixels(datum, image::ColorMode::kColor); });
    EXPECT_EQ(error.code(), ErrorCode::kDataLoss);
    EXPECT_THAT(error.message(), HasSubstr("3 values"));
  }
}

}  // namespace
}  // namespace hearth::caffe
