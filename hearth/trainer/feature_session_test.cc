#include "hearth/trainer/feature_session.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "hearth/trainer/rows/row_id.h"
#include "hearth/trainer/testing/trainer_testing.h"

namespace hearth::trainer {
namespace {

using ::testing::ElementsAre;

caffe::Blob Counting(caffe::Shape shape) {
  caffe::Blob blob(std::move(shape));
  for (int64_t i = 0; i < blob.count(); ++i) blob.data_ptr()[i] = static_cast<float>(i);
  return blob;
}

std::vector<float> Values(caffe::Blob& blob, int64_t row, int64_t rows) {
  const auto values = RowValues(blob.data(), row, rows);
  return {values.begin(), values.end()};
}

TEST(RowValuesTest, EachRowHasItsPart) {
  caffe::Blob blob = Counting({3, 2, 1});
  EXPECT_THAT(Values(blob, 0, 3), ElementsAre(0, 1));
  EXPECT_THAT(Values(blob, 2, 3), ElementsAre(4, 5));
}

TEST(RowValuesTest, ABatchValueBelongsToEveryRow) {
  caffe::Blob loss = Counting({});
  EXPECT_THAT(Values(loss, 2, 3), ElementsAre(0));
  caffe::Blob classes = Counting({4});
  EXPECT_THAT(Values(classes, 1, 3), ElementsAre(0, 1, 2, 3));
}

TEST(RowIdTest, IsTheIdColumnOrElseTheRowNumber) {
  batch::BatchBuilder named, sample, bare;
  EXPECT_EQ(RowId(*named.AddInt64("id", {7, 8}).Build(), 1, 0), "8");
  EXPECT_EQ(RowId(*sample.AddString("SampleID", {"a", "b"}, {false, true}).Build(), 0, 5), "a");
  EXPECT_EQ(RowId(*sample.AddString("SampleID", {"a", "b"}, {false, true}).Build(), 1, 5),
            "00000005");
  EXPECT_EQ(RowId(*bare.AddInt32("x", {1}).Build(), 0, 123), "00000123");
}

}  // namespace
}  // namespace hearth::trainer
