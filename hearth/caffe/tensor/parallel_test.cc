#include "hearth/caffe/tensor/parallel.h"

#include <gtest/gtest.h>

#include <atomic>
#include <mutex>
#include <set>
#include <stdexcept>
#include <thread>
#include <utility>
#include <vector>

namespace hearth::caffe {
namespace {

class Parallel : public testing::Test {
 protected:
  ~Parallel() override { SetThreadCount(before_); }

  // Runs a loop, checks that the thread numbers differ, and returns the loop's ranges.
  static std::set<std::pair<int64_t, int64_t>> Ranges(int64_t begin, int64_t end, int64_t grain) {
    std::mutex mutex;
    std::set<std::pair<int64_t, int64_t>> ranges;
    std::set<int> numbers;
    ParallelFor(begin, end, grain, [&](int64_t first, int64_t last) {
      const std::lock_guard<std::mutex> lock(mutex);
      ranges.emplace(first, last);
      EXPECT_TRUE(numbers.insert(ThreadNumber()).second);
      EXPECT_LT(ThreadNumber(), ThreadCount());
    });
    return ranges;
  }

  const int before_ = ThreadCount();
};

using RangeSet = std::set<std::pair<int64_t, int64_t>>;

TEST_F(Parallel, RangesDependOnTheNumberOfThreadsAndTheGrain) {
  SetThreadCount(3);
  EXPECT_EQ(Ranges(2, 12, 1), RangeSet({{2, 6}, {6, 10}, {10, 12}}));
  EXPECT_EQ(Ranges(0, 10, 5), RangeSet({{0, 5}, {5, 10}}));
  EXPECT_EQ(Ranges(0, 10, 10), RangeSet({{0, 10}}));
  EXPECT_EQ(Ranges(0, 4, 1), RangeSet({{0, 2}, {2, 4}}));
  EXPECT_EQ(Ranges(5, 5, 1), RangeSet());
  SetThreadCount(1);
  EXPECT_EQ(Ranges(0, 10, 1), RangeSet({{0, 10}}));
}

TEST_F(Parallel, NestedLoopsRunOnOneThread) {
  SetThreadCount(2);
  std::atomic<int> inner = 0;
  EXPECT_FALSE(InParallelRegion());
  ParallelFor(0, 2, 1, [&](int64_t, int64_t) {
    EXPECT_TRUE(InParallelRegion());
    const int outer = ThreadNumber();
    ParallelFor(0, 100, 1, [&](int64_t first, int64_t last) {
      EXPECT_EQ(last - first, 100);
      ++inner;
    });
    EXPECT_EQ(ThreadNumber(), outer);
  });
  EXPECT_EQ(inner, 2);
}

TEST_F(Parallel, AnExceptionReachesTheCaller) {
  SetThreadCount(2);
  const auto fail = [](int64_t first, int64_t) {
    if (first > 0) throw std::out_of_range("second half");
  };
  EXPECT_THROW(ParallelFor(0, 10, 1, fail), std::out_of_range);
}

TEST_F(Parallel, AThreadAdoptsTheProcesssCount) {
  SetThreadCount(2);
  int seen = 0;
  std::thread([&] { seen = ThreadCount(); }).join();
  EXPECT_EQ(seen, 2);
}

}  // namespace
}  // namespace hearth::caffe
