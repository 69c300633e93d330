#include "hearth/trainer/step/output_means.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "hearth/base/error.h"

namespace hearth::trainer {
namespace {

using ::testing::ElementsAre;
using ::testing::FloatEq;

std::vector<std::vector<float>> MeansOf(const OutputMeans& means) {
  return OutputMeans::MeansOf(means.Pack(means.sizes()), means.sizes());
}

TEST(OutputMeansTest, WeighsABatchValueByItsRows) {
  OutputMeans means({"accuracy"});
  const std::vector<float> full{0.5f}, rest{1.0f};
  means.Add(0, full, 0, 6);
  means.AddRows(6);
  means.Add(0, rest, 0, 2);
  means.AddRows(2);
  EXPECT_THAT(MeansOf(means)[0], ElementsAre(FloatEq(0.625f)));
}

TEST(OutputMeansTest, AveragesPerRowOutputsOverTheirRows) {
  OutputMeans means({"prob"});
  const std::vector<float> two_rows{1, 2, 3, 4}, one_row{8, 9};
  means.Add(0, two_rows, 2, 2);
  means.AddRows(2);
  means.Add(0, one_row, 1, 1);
  means.AddRows(1);
  EXPECT_THAT(MeansOf(means)[0], ElementsAre(FloatEq(4), FloatEq(5)));
}

TEST(OutputMeansTest, DistinguishesPerClassOutputsFromRows) {
  OutputMeans means({"per_class"});
  const std::vector<float> classes{0.5f, 1.0f};
  means.Add(0, classes, 2, 8);
  means.AddRows(8);
  means.Add(0, classes, 2, 2);  // as many rows as classes, but it is still an output per class
  means.AddRows(2);
  EXPECT_THAT(MeansOf(means)[0], ElementsAre(FloatEq(0.5f), FloatEq(1.0f)));
}

TEST(OutputMeansTest, RanksWithoutRowsAddNothing) {
  OutputMeans mine({"loss"}), empty({"loss"});
  const std::vector<float> loss{3.0f};
  mine.Add(0, loss, 0, 4);
  mine.AddRows(4);
  auto packed = mine.Pack(mine.sizes());
  const auto other = empty.Pack(mine.sizes());
  ASSERT_EQ(packed.size(), other.size());
  for (size_t i = 0; i < packed.size(); ++i) packed[i] += other[i];
  EXPECT_THAT(OutputMeans::MeansOf(packed, mine.sizes())[0], ElementsAre(FloatEq(3.0f)));
}

TEST(OutputMeansTest, RejectsAnOutputWhoseSizeChangesByName) {
  OutputMeans means({"boxes"});
  const std::vector<float> five(5), six(6);
  means.Add(0, five, 5, 4);
  try {
    means.Add(0, six, 6, 4);
    FAIL() << "no error";
  } catch (const Error& error) {
    EXPECT_THAT(error.message(), ::testing::HasSubstr("\"boxes\" has 6 values"));
  }
}

}  // namespace
}  // namespace hearth::trainer
