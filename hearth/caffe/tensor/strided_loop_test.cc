#include "hearth/caffe/tensor/strided_loop.h"

#include <gtest/gtest.h>

#include <vector>

namespace hearth::caffe {
namespace {

TEST(StridedPlanTest, MergesAxesThatAreContiguousInBothArrays) {
  const StridedPlan whole({2, 3, 4}, {12, 4, 1}, {12, 4, 1});
  EXPECT_EQ(whole.rows(), 1);
  EXPECT_EQ(whole.row_size(), 24);
  // The second array has a gap after every 3 x 4 values.
  const StridedPlan gap({2, 3, 4}, {12, 4, 1}, {20, 4, 1});
  EXPECT_EQ(gap.rows(), 2);
  EXPECT_EQ(gap.row_size(), 12);
  EXPECT_EQ(gap.RowAt(1).to, 12);
  EXPECT_EQ(gap.RowAt(1).from, 20);
}

TEST(StridedPlanTest, WritesInTheOrderOfTheFirstArray) {
  const StridedPlan transposed({3, 4}, {1, 3}, {4, 1});
  EXPECT_EQ(transposed.to_stride(), 1);
  EXPECT_EQ(transposed.from_stride(), 4);
  EXPECT_EQ(transposed.row_size(), 3);
  EXPECT_EQ(transposed.rows(), 4);
}

TEST(StridedPlanTest, HandlesScalarsAndEmptyArrays) {
  EXPECT_EQ(StridedPlan({}, {}, {}).rows(), 1);
  EXPECT_EQ(StridedPlan({}, {}, {}).row_size(), 1);
  EXPECT_EQ(StridedPlan({1, 1}, {7, 9}, {0, 0}).row_size(), 1);
  EXPECT_EQ(StridedPlan({3, 0}, {0, 1}, {0, 1}).rows(), 0);
}

TEST(StridedLoopTest, AddsRepeatedValuesToEveryRow) {
  std::vector<float> to(6, 1);
  const std::vector<float> from = {10, 20};
  StridedLoop({{2, 3}, {3, 1}, {1, 0}}, to.data(), from.data(), AddRow{2});
  EXPECT_EQ(to, (std::vector<float>{21, 21, 21, 41, 41, 41}));
}

// Uses more values than one thread processes, dense and with strides.
TEST(StridedLoopTest, CoversEveryValueOnce) {
  constexpr int64_t kCount = 200'000;
  for (const int64_t stride : {1, 3}) {
    std::vector<float> to(kCount, 2), from(kCount * 3, 5);
    StridedLoop({{kCount}, {1}, {stride}}, to.data(), from.data(), MultiplyRow);
    EXPECT_EQ(to, std::vector<float>(kCount, 10));
  }
}

}  // namespace
}  // namespace hearth::caffe
