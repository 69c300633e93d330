#include "hearth/caffe/data/caffeonspark_top.h"

#include <gmock/gmock.h>

#include "hearth/base/error.h"
#include "hearth/caffe/data/testing/row_testing.h"
#include "hearth/caffe/proto/text_reader.h"
#include "hearth/image/testing/image_testing.h"

namespace hearth::caffe {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

CaffeOnSparkTop MakeTop(const std::string& text) {
  CoSDataParameter::TopBlob param;
  ParseText(text, "test", &param);
  return CaffeOnSparkTop(param, TEST, false);
}

std::vector<float> ReadTop(const std::string& text,
                           const std::shared_ptr<const batch::BatchView>& batch, int64_t row = 0) {
  const CaffeOnSparkTop top = MakeTop(text);
  int64_t count = 1;
  for (const int64_t dim : top.row_shape()) count *= dim;
  std::vector<float> out(count);
  top.Read({batch.get(), row}, 0, out.data());
  return out;
}

template <typename Function>
std::string TopError(Function f, ErrorCode code) {
  try {
    f();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), code);
    return error.message();
  }
  return "";
}

TEST(CaffeOnSparkTop, ReadsSingleValues) {
  const auto batch =
      batch::BatchBuilder().AddString("s", {"7"}).AddInt32("i", {-3}).AddFloat("f", {0.5f}).Build();
  EXPECT_THAT(MakeTop("name: 's' type: STRING sample_num_axes: 0").row_shape(), IsEmpty());
  EXPECT_THAT(ReadTop("name: 's' type: STRING sample_num_axes: 0", batch), ElementsAre(7));
  EXPECT_THAT(ReadTop("name: 'i' type: INT channels: 1 sample_num_axes: 1", batch),
              ElementsAre(-3));
  EXPECT_THAT(ReadTop("name: 'f' type: FLOAT channels: 1 height: 1 width: 1", batch),
              ElementsAre(0.5f));
}

TEST(CaffeOnSparkTop, PadsShorterArraysWithZerosAndRejectsLongerOnes) {
  const auto batch = batch::BatchBuilder()
                         .AddInt32List("ints", {{1, 2, 3}, {1, 2}, {}, {1, 2, 3, 4}})
                         .AddFloatList("floats", {{0.5f, 1.5f, 2, 3}, {1}, {}, {}})
                         .Build();
  const std::string ints = "name: 'ints' type: INT_ARRAY channels: 3 sample_num_axes: 1 ";
  EXPECT_THAT(ReadTop(ints, batch), ElementsAre(1, 2, 3));
  EXPECT_THAT(
      MakeTop("name: 'floats' type: FLOAT_ARRAY channels: 1 height: 2 width: 2").row_shape(),
      ElementsAre(1, 2, 2));
  EXPECT_THAT(ReadTop("name: 'floats' type: FLOAT_ARRAY channels: 1 height: 2 width: 2", batch),
              ElementsAre(0.5f, 1.5f, 2, 3));
  EXPECT_THAT(ReadTop(ints, batch, 2), ElementsAre(0, 0, 0));
  std::vector<float> used = {7, 8, 9};  // values of an earlier row
  MakeTop(ints).Read({batch.get(), 1}, 0, used.data());
  EXPECT_THAT(used, ElementsAre(1, 2, 0));
  EXPECT_THAT(TopError([&] { ReadTop(ints, batch, 3); }, ErrorCode::kDataLoss),
              "column 'ints' has 4 values, more than the 3 of its top");
  EXPECT_TRUE(MakeTop(ints + "transpose: true").transposed());
}

TEST(CaffeOnSparkTop, ReadsImages) {
  const auto batch = batch::BatchBuilder()
                         .AddBinary("png", {image::EncodePng(image::GradientImage(4, 4, 3))})
                         .AddBinary("raw", {"abcdefgh"})
                         .Build();
  const std::vector<float> png = ReadTop(
      "name: 'png' type: ENCODED_IMAGE channels: 3 height: 4 width: 4 out_height: 2 out_width: 2 "
      "transform_param { crop_size: 2 mean_value: 20 }",
      batch);
  ASSERT_EQ(png.size(), 12u);
  EXPECT_EQ(png[0], 7 + 3);       // blue at row 1, column 1
  EXPECT_EQ(png[4], 7 + 3 + 40);  // green
  const std::vector<float> raw =
      ReadTop("name: 'raw' type: RAW_IMAGE channels: 2 height: 2 width: 2", batch);
  EXPECT_THAT(raw, ElementsAre('a', 'b', 'c', 'd', 'e', 'f', 'g', 'h'));
}

TEST(CaffeOnSparkTop, NamesContradictoryFields) {
  const auto error = [](const std::string& text) {
    return TopError([&] { MakeTop(text); }, ErrorCode::kInvalidArgument);
  };
  EXPECT_THAT(error("name: 'a' type: INT"),
              HasSubstr("channels, height and width must be above 0"));
  EXPECT_THAT(error("name: 'a' type: INT channels: 2 sample_num_axes: 1"),
              HasSubstr("single value"));
  EXPECT_THAT(error("name: 'a' type: RAW_IMAGE"), HasSubstr("set all three above 0"));
  EXPECT_THAT(error("name: 'a' type: RAW_IMAGE channels: 1 height: 4 width: 4 out_height: 2"),
              HasSubstr("out_channels x out_height x out_width is 0 x 2 x 0"));
  EXPECT_THAT(error("name: 'a' type: RAW_IMAGE channels: 1 height: 4 width: 4 sample_num_axes: 2"),
              HasSubstr("an image needs sample_num_axes 3"));
  EXPECT_THAT(error("name: 'a' type: INT_ARRAY channels: 1 height: 4 width: 4 transpose: true"),
              HasSubstr("transpose needs sample_num_axes 1"));
  EXPECT_THAT(error("name: 'a' type: INT sample_num_axes: 4"), HasSubstr("from 0 to 3"));
}

TEST(CaffeOnSparkTop, NamesAMissingColumn) {
  EXPECT_THAT(TopError([] { ReadTop("name: 'b' type: INT sample_num_axes: 0", CountingBatch(1)); },
                       ErrorCode::kNotFound),
              HasSubstr("b"));
}

}  // namespace
}  // namespace hearth::caffe
