#include "hearth/trainer/step/progress.h"

#include <gtest/gtest.h>

namespace hearth::trainer {
namespace {

using std::chrono::milliseconds;

TEST(ProgressTest, ReportsRowsPerSecondOfAllRanksAndTheTimeLeft) {
  const Progress::Clock::time_point start{};
  Progress progress(0, 100, 64, start);
  auto update = progress.OnIteration(1, 2.5, 0.01, 64, start + milliseconds(500));
  ASSERT_TRUE(update);
  EXPECT_NEAR(update->images_per_s, 128, 1e-9);
  EXPECT_NEAR(update->eta_s, 49.5, 1e-9);
  EXPECT_EQ(update->ToJson()["effective_batch"], 64);
}

TEST(ProgressTest, UpdatesAtMostFiveTimesPerSecondAndAtTheEnd) {
  const Progress::Clock::time_point start{};
  Progress progress(0, 1000, 1, start);
  int spoken = 0;
  for (int i = 1; i <= 999; ++i) {
    spoken += progress.OnIteration(i, 0, 0, 1, start + milliseconds(i)).has_value();
  }
  EXPECT_EQ(spoken, 5);
  EXPECT_TRUE(progress.OnIteration(1000, 0, 0, 1, start + milliseconds(1000)));
}

TEST(ProgressTest, ForgetsASlowStart) {
  const Progress::Clock::time_point start{};
  Progress progress(0, 1000, 1, start);
  ASSERT_TRUE(progress.OnIteration(1, 0, 0, 10, start + milliseconds(10000)));
  std::optional<ProgressUpdate> update;
  for (int i = 2; i <= 40; ++i) {
    update = progress.OnIteration(i, 0, 0, 10, start + milliseconds(10000 + (i - 1) * 250));
  }
  ASSERT_TRUE(update);
  EXPECT_NEAR(update->images_per_s, 40, 1e-6);
}

TEST(ProgressTest, StartsFromTheResumedIteration) {
  const Progress::Clock::time_point start{};
  Progress progress(50, 60, 1, start);
  auto update = progress.OnIteration(51, 0, 0, 1, start + milliseconds(1000));
  ASSERT_TRUE(update);
  EXPECT_NEAR(update->eta_s, 9, 1e-9);
}

}  // namespace
}  // namespace hearth::trainer
