#include "hearth/caffe/data/row_values.h"

#include <gmock/gmock.h>

#include "hearth/base/error.h"
#include "hearth/caffe/data/testing/row_testing.h"

namespace hearth::caffe {
namespace {

TEST(RowId, IsTheIdColumnAsText) {
  const auto batch = batch::BatchBuilder().AddInt64("id", {7, 8}, {false, true}).Build();
  EXPECT_EQ(RowId({batch.get(), 0}, 3), "7");
  EXPECT_EQ(RowId({batch.get(), 1}, 3), "00000003");
}

TEST(RowId, IsTheSampleIdWithoutAnId) {
  const auto batch = batch::BatchBuilder().AddString("SampleID", {"a7"}).Build();
  EXPECT_EQ(RowId({batch.get(), 0}, 3), "a7");
  EXPECT_EQ(RowId({CountingBatch(1).get(), 0}, 12), "00000012");
}

TEST(NumberAt, ReadsNumbersAndNumericText) {
  const auto batch = batch::BatchBuilder()
                         .AddString("text", {"3", " -2.5 ", "+1e2", "seven", "", "4x"})
                         .AddDouble("number", {1.5, 0, 0, 0, 0, 0})
                         .Build();
  const batch::ColumnView& text = batch->column("text");
  EXPECT_EQ(NumberAt(batch->column("number"), 0), 1.5f);
  EXPECT_EQ(NumberAt(text, 0), 3);
  EXPECT_EQ(NumberAt(text, 1), -2.5f);
  EXPECT_EQ(NumberAt(text, 2), 100);
  for (const int row : {3, 4, 5}) {
    try {
      NumberAt(text, row);
      FAIL() << row;
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::kDataLoss);
    }
  }
}

TEST(ColumnWithValue, RejectsNulls) {
  const auto batch = batch::BatchBuilder().AddInt64("label", {7, 8}, {false, true}).Build();
  EXPECT_EQ(ColumnWithValue({batch.get(), 0}, "label").AsInt64(0), 7);
  try {
    ColumnWithValue({batch.get(), 1}, "label");
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.message(), "column 'label' is null");
    EXPECT_EQ(error.code(), ErrorCode::kDataLoss);
  }
}

}  // namespace
}  // namespace hearth::caffe
