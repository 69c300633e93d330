#include "hearth/trainer/step/weight_average.h"

#include <gmock/gmock.h>

#include <cmath>
#include <vector>

#include "hearth/caffe/tensor/testing/tensor_testing.h"
#include "hearth/trainer/testing/sync_testing.h"

namespace hearth::trainer {
namespace {

using WeightAverageTest = DistributedSyncTest;

TEST_F(WeightAverageTest, WeighsRanksByTheirRows) {
  RunRanks(
      [](int rank, DistributedSync& sync) {
        caffe::Tensor diff = sync.AllocateDiff(Layout()), weights = caffe::Full({7}, NAN);
        const auto state = [&] { return std::vector<caffe::Tensor>{weights}; };
        const auto step = [&](double rows, bool shown) {
          diff.fill_(rank);
          for (const size_t index : {2, 1, 0}) sync.GradientReady(index);
          const auto found = sync.Finish(rows);
          EXPECT_THAT(caffe::ListOf(diff), testing::Each(rank));  // not averaged yet
          EXPECT_EQ(found.summed, rows);
          sync.Updated(shown, state);
          return found.all;
        };
        // Rank 0 has no rows and invalid weights; rank 2 has twice as many rows as rank 1.
        if (rank > 0) weights.fill_(3 * rank);
        EXPECT_EQ(step(rank, false), 3);
        EXPECT_EQ(std::isnan(weights[0].item()), rank == 0) << "too early";
        step(rank, false);
        EXPECT_FLOAT_EQ(weights[6].item(), 5);
        // The average comes early if it is requested or if there are fewer rows than in the first
        // step.
        weights.fill_(rank);
        step(1, true);
        EXPECT_FLOAT_EQ(weights[0].item(), 1);
        weights.fill_(rank);
        step(1, false);
        EXPECT_FLOAT_EQ(weights[0].item(), rank);
        EXPECT_EQ(step(0, false), 0);  // the epoch ends for all ranks at the same time
        EXPECT_FLOAT_EQ(weights[0].item(), 1);
      },
      2);
}

TEST_F(WeightAverageTest, ComesEarlyOnceThereAreFewerRows) {
  RunRanks(
      [](int rank, DistributedSync& sync) {
        caffe::Tensor diff = sync.AllocateDiff(Layout()), weights = caffe::Full({3}, 1.0f * rank);
        const auto state = [&] { return std::vector<caffe::Tensor>{weights}; };
        sync.Finish(1);
        sync.Updated(false, state);
        EXPECT_FLOAT_EQ(weights[0].item(), rank);
        sync.Finish(rank == 0 ? 0 : 1);
        sync.Updated(false, state);
        EXPECT_FLOAT_EQ(weights[0].item(), (0 + 2 * 1 + 2 * 2) / 5.0f);
      },
      10);
}

}  // namespace
}  // namespace hearth::trainer
