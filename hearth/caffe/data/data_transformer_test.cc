#include "hearth/caffe/data/data_transformer.h"

#include <gmock/gmock.h>

#include <cmath>
#include <map>

#include "hearth/base/error.h"
#include "hearth/caffe/proto/text_reader.h"

namespace hearth::caffe {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

const std::string kMeanFile = std::string(HEARTH_TEST_DATA) + "/golden/files/mean.binaryproto";

DataTransformer Make(const std::string& text, Phase phase = TEST) {
  TransformationParameter param;
  ParseText(text, "test", &param);
  return DataTransformer(param, phase);
}

template <typename Function>
std::string TransformerError(Function f) {
  try {
    f();
  } catch (const Error& error) {
    return error.message();
  }
  return "";
}

// 3 x 4 pixels of one channel with the values 0 to 11.
std::vector<float> Transform(const DataTransformer& transformer, DataTransformer::Choice choice) {
  std::vector<uint8_t> pixels(12);
  for (int i = 0; i < 12; ++i) pixels[i] = static_cast<uint8_t>(i);
  std::vector<float> out(transformer.OutputSize(3) * transformer.OutputSize(4));
  transformer.Transform(PixelView<uint8_t>::Planes(pixels.data(), 1, 3, 4), choice, out.data());
  return out;
}

TEST(DataTransformer, SubtractsTheMeanBeforeScaling) {
  const DataTransformer transformer = Make("mean_value: 1 scale: 0.5");
  EXPECT_EQ(Transform(transformer, {})[4], 1.5f);
}

TEST(DataTransformer, CropsFromTheCenterInTest) {
  const DataTransformer transformer = Make("crop_size: 2");
  EXPECT_FALSE(transformer.is_random());
  EXPECT_THAT(Transform(transformer, transformer.Centre(3, 4)), ElementsAre(1, 2, 5, 6));
}

TEST(DataTransformer, MirrorsAfterTheCropAndTheMean) {
  const DataTransformer transformer = Make("crop_size: 2 mean_value: 1");
  EXPECT_THAT(Transform(transformer, {1, 2, true}), ElementsAre(6, 5, 10, 9));
}

TEST(DataTransformer, CropsUniformlyAtRandomInTrain) {
  const DataTransformer transformer = Make("crop_size: 2", TRAIN);
  EXPECT_TRUE(transformer.is_random());
  Random random(1);
  std::map<std::pair<int64_t, int64_t>, int> seen;
  constexpr int kDraws = 6000;
  for (int i = 0; i < kDraws; ++i) {
    const auto choice = transformer.Choose(3, 4, random);
    EXPECT_FALSE(choice.mirror);
    ++seen[{choice.top, choice.left}];
  }
  ASSERT_EQ(seen.size(), 6u);  // 2 rows x 3 columns
  for (const auto& [position, count] : seen) EXPECT_NEAR(count, 1000, 4 * std::sqrt(1000));
}

TEST(DataTransformer, MirrorsHalfOfTheImagesInBothPhases) {
  for (const Phase phase : {TRAIN, TEST}) {
    const DataTransformer transformer = Make("mirror: true", phase);
    Random random(1);
    int mirrored = 0;
    for (int i = 0; i < 4000; ++i) mirrored += transformer.Choose(3, 4, random).mirror;
    EXPECT_NEAR(mirrored, 2000, 4 * std::sqrt(1000));
  }
}

TEST(DataTransformer, AcceptsOneMeanValueOrOnePerChannel) {
  const std::vector<float> pixels = {1, 2, 3};
  std::vector<float> out(3);
  const auto view = PixelView<float>::Planes(pixels.data(), 3, 1, 1);
  Make("mean_value: 1 mean_value: 1 mean_value: 0.5").Transform(view, {}, out.data());
  EXPECT_THAT(out, ElementsAre(0, 1, 2.5f));
  Make("mean_value: 1").Transform(view, {}, out.data());
  EXPECT_THAT(out, ElementsAre(0, 1, 2));
  EXPECT_THAT(TransformerError([] { Make("mean_value: 1 mean_value: 2").RequireFits(3, 1, 1); }),
              "2 mean_values do not fit an image of 3 channels");
}

TEST(DataTransformer, ReadsMeanFilesOfEveryFormat) {
  std::vector<float> first;
  for (const char* name : {"mean", "mean_shape", "mean_double"}) {
    const std::string file =
        std::string(HEARTH_TEST_DATA) + "/golden/files/" + name + ".binaryproto";
    const DataTransformer transformer = Make("mean_file: '" + file + "' crop_size: 5");
    transformer.RequireFits(3, 7, 9);
    const std::vector<float> pixels(size_t{3} * 7 * 9, 100);
    std::vector<float> out(size_t{3} * 5 * 5);
    transformer.Transform(PixelView<float>::Planes(pixels.data(), 3, 7, 9),
                          transformer.Centre(7, 9), out.data());
    if (first.empty()) first = out;
    EXPECT_EQ(out, first) << name;
  }
  EXPECT_NE(first[0], 100);
}

TEST(DataTransformer, NamesAnImageOfTheWrongSize) {
  EXPECT_THAT(TransformerError([] { Make("mean_file: '" + kMeanFile + "'").RequireFits(3, 8, 9); }),
              "an image of 3 x 8 x 9 does not fit the mean file's 3 x 7 x 9");
  EXPECT_THAT(TransformerError([] { Make("crop_size: 5").RequireFits(1, 4, 9); }),
              "an image of 4 x 9 pixels is smaller than crop_size 5");
}

TEST(DataTransformer, RejectsMutuallyExclusiveFields) {
  EXPECT_THAT(TransformerError([] { Make("mean_file: 'x' mean_value: 1"); }),
              HasSubstr("choose one"));
  EXPECT_THAT(TransformerError([] { Make("force_color: true force_gray: true"); }),
              HasSubstr("choose one"));
  EXPECT_THAT(TransformerError([] { Make("mean_file: '/no/such.file'"); }),
              HasSubstr("/no/such.file"));
}

TEST(DataTransformer, ChoosesColorByTheFlagsThenByTheChannels) {
  EXPECT_EQ(Make("force_color: true").color_mode(1), image::ColorMode::kColor);
  EXPECT_EQ(Make("force_gray: true").color_mode(3), image::ColorMode::kGray);
  EXPECT_EQ(Make("").color_mode(1), image::ColorMode::kGray);
  EXPECT_EQ(Make("").color_mode(3), image::ColorMode::kColor);
  EXPECT_EQ(Make("").color_mode(4), image::ColorMode::kUnchanged);
}

}  // namespace
}  // namespace hearth::caffe
