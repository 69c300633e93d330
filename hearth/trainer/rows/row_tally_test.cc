#include "hearth/trainer/rows/row_tally.h"

#include <gtest/gtest.h>

#include "hearth/base/error.h"

namespace hearth::trainer {
namespace {

class RowTallyTest : public ::testing::Test {
 protected:
  // Two processes with one device each.
  static Job JobOfTwo() {
    Job job;
    job.world = 2;
    job.run = "a run";
    return job;
  }

  static caffe::TrainingPosition At(int64_t fetches) {
    caffe::TrainingPosition position;
    position.run = "a run";
    position.ranks = 2;
    position.fetches = fetches;
    position.counts = caffe::RowCounts{.rows = 40, .bad = 3, .whole_epoch = 100, .all_bad = 9};
    return position;
  }

  const Job job_ = JobOfTwo();
  InvalidRows invalid_rows_{{.rows = 5}, [](const nlohmann::json&) {}};
  RowTally tally_{job_, invalid_rows_, 0};
};

TEST_F(RowTallyTest, CountsPerEpochAndPerRun) {
  tally_.AddStep(8, 2);
  EXPECT_EQ(tally_.counts().rows, 10);
  EXPECT_EQ(tally_.counts().bad, 2);
  tally_.AddStep(0, 1);  // the end of the epoch
  EXPECT_EQ(tally_.counts().rows, 0);
  EXPECT_EQ(tally_.counts().bad, 0);
  EXPECT_EQ(tally_.counts().whole_epoch, 11);
  tally_.AddValidation(1);
  EXPECT_EQ(tally_.counts().all_bad, 4);
  EXPECT_EQ(invalid_rows_.count(), 4);
}

TEST_F(RowTallyTest, EndsTheRunAboveTheLimit) {
  ASSERT_TRUE(tally_.Report("r1", "undecodable"));
  tally_.AddStep(8, 5);
  EXPECT_THROW(tally_.AddStep(8, 1), Error);
}

TEST_F(RowTallyTest, ReplayedRowsAreCountedOnce) {
  tally_.BeginReplay();
  EXPECT_FALSE(tally_.Report("r1", "undecodable"));
  EXPECT_FALSE(tally_.Report("r2", "undecodable"));
  EXPECT_EQ(tally_.EndReplay(), 2);
  EXPECT_TRUE(tally_.Report("r3", "undecodable"));
}

TEST_F(RowTallyTest, ContinuesThePositionsCounts) {
  tally_.ResumeAt(At(10), 1, 1);
  EXPECT_EQ(tally_.counts().rows, 40);
  EXPECT_EQ(tally_.counts().bad, 3);
  EXPECT_EQ(tally_.counts().all_bad, 9);
  EXPECT_EQ(invalid_rows_.count(), 9);
}

TEST_F(RowTallyTest, AnEpochThatBeginsAgainCountsItsRowsAgain) {
  tally_.ResumeAt(At(0), 0, 0);
  EXPECT_EQ(tally_.counts().rows, 0);
  EXPECT_EQ(tally_.counts().bad, 0);
  EXPECT_EQ(tally_.counts().all_bad, 6);
}

TEST_F(RowTallyTest, AnotherRunsInvalidRowsAreNotCounted) {
  caffe::TrainingPosition position = At(10);
  position.run = "another run";
  tally_.ResumeAt(position, 0, 0);
  EXPECT_EQ(tally_.counts().all_bad, 0);
}

TEST_F(RowTallyTest, CountsReplayedRowsIfTheSealHasNoCounts) {
  caffe::TrainingPosition position = At(10);
  position.counts.reset();
  tally_.ResumeAt(position, 12, 4);
  EXPECT_EQ(tally_.counts().rows, 12);
  EXPECT_EQ(tally_.counts().bad, 4);
}

}  // namespace
}  // namespace hearth::trainer
