#include "hearth/collective/operation/bounded_yields.h"

#include <gtest/gtest.h>

#include <thread>

namespace hearth::collective {
namespace {

TEST(BoundedYields, RanksShareCoresWhereTheyAreMore) {
  const int cores = static_cast<int>(std::thread::hardware_concurrency());
  EXPECT_FALSE(BoundedYields(cores).shares_core());
  EXPECT_TRUE(BoundedYields(cores + 1).shares_core());
}

TEST(BoundedYields, ManyWaitsSleepAfterALongYield) {
  BoundedYields yields(1, BoundedYields::Clock::duration(-1));  // every yield is long
  EXPECT_TRUE(yields.Yield());
  for (int i = 0; i < BoundedYields::kWaitsWithout; ++i) ASSERT_FALSE(yields.Yield());
  EXPECT_TRUE(yields.Yield());
}

TEST(BoundedYields, ShortYieldsGoOn) {
  BoundedYields yields(1, std::chrono::hours(1));
  for (int i = 0; i < 100; ++i) ASSERT_TRUE(yields.Yield());
}

}  // namespace
}  // namespace hearth::collective
