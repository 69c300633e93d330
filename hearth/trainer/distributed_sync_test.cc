#include "hearth/trainer/distributed_sync.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "hearth/base/thread.h"
#include "hearth/caffe/net/testing/tensor_testing.h"

namespace hearth::trainer {
namespace {

constexpr int kRanks = 3;

class DistributedSyncTest : public ::testing::Test {
 protected:
  // Runs `body` as every rank, each on its own thread.
  template <typename Body>
  void RunRanks(Body body, int every = 1) {
    auto groups = collective::Group::ConnectThreads(kRanks);
    std::vector<Thread> threads;
    for (int rank = 0; rank < kRanks; ++rank) {
      threads.emplace_back("rank", [&, rank] {
        const auto sync = MakeDistributedSync(*groups[static_cast<size_t>(rank)], 10, every);
        body(rank, *sync);
      });
    }
    for (Thread& thread : threads) thread.Join();
  }

  static caffe::ParamLayout Layout() {
    caffe::ParamLayout layout;
    for (const int64_t count : {5, 40, 1}) layout.Append(count);
    return layout;
  }
};

TEST_F(DistributedSyncTest, SumsGradientsAndWeightsOfAllRanksInEveryRound) {
  RunRanks([](int rank, DistributedSync& sync) {
    caffe::Tensor diff = sync.AllocateDiff(Layout());
    for (int round = 0; round < 3; ++round) {
      diff.fill_(rank + round);
      // Ranks finish their layers in different orders; one of them reports no layer at all.
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

// Of every mode: the number of iterations between averages is 1 where gradients are summed.
class ControlValues : public DistributedSyncTest, public ::testing::WithParamInterface<int> {};

INSTANTIATE_TEST_SUITE_P(Modes, ControlValues, ::testing::Values(1, 10));

TEST_P(ControlValues, AreSummedOverAllRanksInEveryRound) {
  RunRanks(
      [](int rank, DistributedSync& sync) {
        sync.AllocateDiff(Layout());
        for (int round = 0; round < 3; ++round) {
          for (int bad = 0; bad < rank; ++bad) sync.AddInvalidRow();
          EXPECT_FLOAT_EQ(sync.Finish(0.5 * rank).all, 1.5);
          EXPECT_EQ(sync.total_invalid_rows(), 3);  // of 0, 1 and 2
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

TEST_F(DistributedSyncTest, LocalSgdAveragesWeightsByRowsPeriodically) {
  RunRanks(
      [](int rank, DistributedSync& sync) {
        caffe::Tensor diff = sync.AllocateDiff(Layout()), weights = caffe::Full({7}, NAN);
        const auto state = [&] { return std::vector<caffe::Tensor>{weights}; };
        const auto step = [&](double rows, bool needs_equal_weights) {
          diff.fill_(rank);
          for (const size_t index : {2, 1, 0}) sync.GradientReady(index);
          const auto found = sync.Finish(rows);
          EXPECT_THAT(caffe::ListOf(diff), testing::Each(rank));  // not averaged yet
          EXPECT_EQ(found.summed, rows);
          sync.Updated(needs_equal_weights, state);
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
        EXPECT_EQ(step(0, false), 0);  // all ranks end the epoch together
        EXPECT_FLOAT_EQ(weights[0].item(), 1);
      },
      2);
}

TEST_F(DistributedSyncTest, FewerRowsTriggerAnAverage) {
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
