#include "hearth/collective/operation/bounded_yields.h"

#include <gtest/gtest.h>

#include <thread>

namespace hearth::collective {
namespace {

TEST(BoundedYields, RanksShareCoresIfThereAreMoreRanks) {
  const int cores = static_cast<int>(std::thread::hardware_concurrency());
  EXPECT_FALSE(BoundedYields(cores).shares_core());
  EXPECT_TRUE(BoundedYields(cores + 1).shares_core());
}

constexpr BoundedYields::Clock::duration kEveryYieldIsLong(-1);

// Expects one yield that counts as long, then `waits` waits that sleep.
void ExpectSleepingWaits(BoundedYields& yields, int waits) {
  ASSERT_TRUE(yields.Yield());
  for (int i = 0; i < waits; ++i) ASSERT_FALSE(yields.Yield()) << i;
}

TEST(BoundedYields, ManyWaitsSleepAfterLongYields) {
  BoundedYields yields(1, kEveryYieldIsLong);
  for (int waits = BoundedYields::kFirstSleepingWaits; waits < BoundedYields::kMaxSleepingWaits;
       waits *= 4) {
    ExpectSleepingWaits(yields, waits);
  }
  for (int i = 0; i < 2; ++i) ExpectSleepingWaits(yields, BoundedYields::kMaxSleepingWaits);
}

TEST(BoundedYields, FewWaitsSleepAfterARareLongYield) {
  BoundedYields yields(1, kEveryYieldIsLong);
  ExpectSleepingWaits(yields, BoundedYields::kFirstSleepingWaits);
  ExpectSleepingWaits(yields, 4 * BoundedYields::kFirstSleepingWaits);
  yields.set_long_yield(std::chrono::hours(1));
  for (int i = 0; i < BoundedYields::kShortYields; ++i) ASSERT_TRUE(yields.Yield());
  yields.set_long_yield(kEveryYieldIsLong);
  ExpectSleepingWaits(yields, BoundedYields::kFirstSleepingWaits);
  EXPECT_TRUE(yields.Yield());
}

TEST(BoundedYields, ShortYieldsContinue) {
  BoundedYields yields(1, std::chrono::hours(1));
  for (int i = 0; i < 100; ++i) ASSERT_TRUE(yields.Yield());
}

}  // namespace
}  // namespace hearth::collective
