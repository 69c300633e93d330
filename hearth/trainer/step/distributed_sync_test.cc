#include "hearth/trainer/step/distributed_sync.h"

#include <gtest/gtest.h>

#include "hearth/trainer/testing/sync_testing.h"

namespace hearth::trainer {
namespace {

// Tests every mode. The parameter is `every`: 1 sums gradients, other values average weights.
class ControlValues : public DistributedSyncTest, public ::testing::WithParamInterface<int> {};

INSTANTIATE_TEST_SUITE_P(Modes, ControlValues, ::testing::Values(1, 10));

TEST_P(ControlValues, AreSummedOverAllRanksInEveryRound) {
  RunRanks(
      [](int rank, DistributedSync& sync) {
        sync.AllocateDiff(Layout());
        for (int round = 0; round < 3; ++round) {
          for (int bad = 0; bad < rank; ++bad) sync.AddInvalidRow();
          EXPECT_FLOAT_EQ(sync.Finish(0.5 * rank).all, 1.5);
          EXPECT_EQ(sync.total_invalid_rows(), 3);  // the sum of 0, 1 and 2
          EXPECT_FLOAT_EQ(sync.total_weight(), 1.5);
        }
      },
      GetParam());
}

TEST_P(ControlValues, ARequestOfOneRankReachesAllInTheSameRound) {
  RunRanks(
      [](int rank, DistributedSync& sync) {
        sync.AllocateDiff(Layout());
        const auto before = sync.Finish(1);
        EXPECT_FALSE(before.stop || before.snapshot);
        if (rank == 1) sync.RequestStop();
        if (rank == 2) sync.RequestSnapshot();
        const auto after = sync.Finish(1);
        EXPECT_TRUE(after.stop && after.snapshot);
        EXPECT_FALSE(sync.Finish(1).snapshot) << "it is written once";
      },
      GetParam());
}

TEST_P(ControlValues, OfZeroWeightOnAllRanksEndTheEpoch) {
  RunRanks(
      [](int, DistributedSync& sync) {
        sync.AllocateDiff(Layout());
        EXPECT_EQ(sync.Finish(0).all, 0);
      },
      GetParam());
}

}  // namespace
}  // namespace hearth::trainer
