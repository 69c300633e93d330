#include "hearth/trainer/step/step_times.h"

#include <gtest/gtest.h>

namespace hearth::trainer {
namespace {

using std::chrono::milliseconds;

TEST(StepTimesTest, SharesAddUpToOne) {
  const StepTimes::Clock::time_point start{};
  StepTimes times(3, start);
  EXPECT_FALSE(times.OnIteration({.rows = 0.25, .ranks = 0.5}, false, start + milliseconds(900)));
  const auto event =
      times.OnIteration({.rows = 0.25, .ranks = 0.5}, false, start + milliseconds(2000));
  ASSERT_TRUE(event);
  EXPECT_EQ((*event)["rank"], 3);
  EXPECT_DOUBLE_EQ((*event)["rows_wait"], 0.25);
  EXPECT_DOUBLE_EQ((*event)["ranks_wait"], 0.5);
  EXPECT_DOUBLE_EQ((*event)["compute"], 0.25);
}

TEST(StepTimesTest, EachEventCoversItsOwnSecondAndTheLastOneTheRest) {
  const StepTimes::Clock::time_point start{};
  StepTimes times(0, start);
  ASSERT_TRUE(times.OnIteration({.rows = 1, .ranks = 0}, false, start + milliseconds(1000)));
  const auto last = times.OnIteration({.rows = 0, .ranks = 0}, true, start + milliseconds(1100));
  ASSERT_TRUE(last);
  EXPECT_EQ((*last)["rows_wait"], 0);
  EXPECT_EQ((*last)["compute"], 1);
}

}  // namespace
}  // namespace hearth::trainer
