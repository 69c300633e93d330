#include "hearth/caffe/solver/row_cursor.h"

#include <gtest/gtest.h>

#include "hearth/caffe/net/testing/net_testing.h"

namespace hearth::caffe {
namespace {

// Returns a net that is fed ten rows in minibatches of 4, 4 and 2.
std::unique_ptr<Net> TenRows() {
  return std::make_unique<Net>(ParseNet(RowsNet(4, 10), "net"), ContextOf(TRAIN), TestRegistry());
}

TEST(RowCursor, CountsFetchesOfAnEpoch) {
  const auto net = TenRows();
  RowCursor cursor(*net);
  for (const int64_t rows : {4, 4, 2, 0}) EXPECT_EQ(cursor.Fetch(), rows);
  EXPECT_EQ(cursor.fetches(), 4);
  cursor.NextEpoch();
  EXPECT_EQ(cursor.epoch(), 1);
  EXPECT_EQ(cursor.fetches(), 0);
  EXPECT_EQ(cursor.Fetch(), 4);
}

TEST(RowCursor, SkipsToAPosition) {
  const auto net = TenRows();
  RowCursor cursor(*net);
  const Skipped skipped = cursor.SkipTo(2, 2, 100);
  EXPECT_EQ(skipped.rows, 8);
  EXPECT_EQ(skipped.minibatches, 2);
  EXPECT_EQ(cursor.epoch(), 2);
  EXPECT_EQ(cursor.fetches(), 2);
  EXPECT_EQ(cursor.Fetch(), 2);
}

TEST(RowCursor, StopsReadingAtTheEndOfTheEpoch) {
  const auto net = TenRows();
  RowCursor cursor(*net);
  const Skipped skipped = cursor.SkipTo(0, 7, 100);
  EXPECT_EQ(skipped.rows, 10);
  EXPECT_EQ(skipped.minibatches, 3);
  EXPECT_EQ(cursor.fetches(), 7) << "the other ranks' position";
}

TEST(RowCursor, SkipsNoRowsToItsCurrentPosition) {
  const auto net = TenRows();
  RowCursor cursor(*net);
  const Skipped skipped = cursor.SkipTo(0, 0, 100);
  EXPECT_EQ(skipped.rows, 0);
  EXPECT_EQ(skipped.minibatches, 0);
  EXPECT_EQ(cursor.Fetch(), 4);
}

// Rows that are fed end, so the limit applies only to nets that read files.
TEST(RowCursor, TheLimitOfFetchesDoesNotApplyToFedRows) {
  const auto net = TenRows();
  RowCursor cursor(*net);
  const Skipped skipped = cursor.SkipTo(1, 2, 1);
  EXPECT_EQ(skipped.rows, 8);
  EXPECT_EQ(skipped.minibatches, 2);
  EXPECT_EQ(cursor.epoch(), 1);
  EXPECT_EQ(cursor.fetches(), 2);
}

}  // namespace
}  // namespace hearth::caffe
