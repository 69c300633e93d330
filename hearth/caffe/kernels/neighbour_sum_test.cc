#include "hearth/caffe/kernels/neighbour_sum.h"

#include <gmock/gmock.h>

#include <vector>

namespace hearth::caffe {
namespace {

using ::testing::ElementsAre;

TEST(NeighbourSum, AcrossChannelsEndsAtTheFirstAndTheLast) {
  const std::vector<float> values = {1, 10, 2, 20, 3, 30, 4, 40};  // 4 channels of 1 x 2
  std::vector<float> sums(8);
  SumAcrossChannels({4, 1, 2}, 3, values.data(), sums.data());
  EXPECT_THAT(sums, ElementsAre(3, 30, 6, 60, 9, 90, 7, 70));
  SumAcrossChannels({4, 1, 2}, 1, values.data(), sums.data());
  EXPECT_EQ(sums, values);
}

TEST(NeighbourSum, WithinChannelsEndsAtTheBorder) {
  const std::vector<float> values = {1,  2,  3,  4,  5,  6,
                                     10, 10, 10, 10, 10, 10};  // 2 channels of 2 x 3
  std::vector<float> sums(12), scratch(6);
  SumWithinChannels({2, 2, 3}, 3, values.data(), scratch.data(), sums.data());
  EXPECT_THAT(sums, ElementsAre(12, 21, 16, 12, 21, 16, 40, 60, 40, 40, 60, 40));
}

}  // namespace
}  // namespace hearth::caffe
