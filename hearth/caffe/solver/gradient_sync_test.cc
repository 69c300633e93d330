#include "hearth/caffe/solver/gradient_sync.h"

#include <gtest/gtest.h>

#include "hearth/caffe/tensor/testing/tensor_testing.h"

namespace hearth::caffe {
namespace {

TEST(LocalSyncTest, TheGradientIsThatOfTheOneSolver) {
  LocalSync sync;
  ParamLayout layout;
  for (const int64_t count : {5, 40, 1}) layout.Append(count);
  const Tensor diff = sync.AllocateDiff(layout);
  EXPECT_EQ(diff.numel(), layout.size);
  EXPECT_EQ(LargestMagnitude(diff), 0);
  EXPECT_FALSE(sync.TakeDeviceDiff(diff));
  for (const double weight : {0.0, 0.25, 3.0}) {
    const GradientSync::Result result = sync.Finish(weight);
    EXPECT_EQ(result.all, weight);
    EXPECT_EQ(result.summed, weight);
    EXPECT_FALSE(result.stop);
    EXPECT_FALSE(result.snapshot);
  }
}

}  // namespace
}  // namespace hearth::caffe
