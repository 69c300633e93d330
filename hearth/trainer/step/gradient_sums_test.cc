#include "hearth/trainer/step/gradient_sums.h"

#include <gmock/gmock.h>

#include "hearth/caffe/tensor/testing/tensor_testing.h"
#include "hearth/trainer/testing/sync_testing.h"

namespace hearth::trainer {
namespace {

using GradientSumsTest = DistributedSyncTest;

TEST_F(GradientSumsTest, SumsGradientsAndWeightsOfAllRanksInEveryRound) {
  RunRanks([](int rank, DistributedSync& sync) {
    caffe::Tensor diff = sync.AllocateDiff(Layout());
    for (int round = 0; round < 3; ++round) {
      diff.fill_(rank + round);
      // Ranks report their layers in different orders; one rank reports no layer at all.
      if (rank == 0) {
        for (const size_t index : {2, 1, 0}) sync.GradientReady(index);
      } else if (rank == 1) {
        for (const size_t index : {0, 2, 1}) sync.GradientReady(index);
      }
      EXPECT_FLOAT_EQ(sync.Finish(0.5 * rank).summed, 1.5);
      EXPECT_THAT(caffe::ListOf(diff), testing::Each(3 + 3 * round));
    }
  });
}

}  // namespace
}  // namespace hearth::trainer
