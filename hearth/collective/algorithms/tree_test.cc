#include <gtest/gtest.h>

#include <atomic>
#include <vector>

#include "hearth/collective/algorithms/testing/algorithms_testing.h"

namespace hearth::collective {
namespace {

class TreeTest : public ::testing::TestWithParam<int> {};

TEST_P(TreeTest, BroadcastReachesAllRanksFromEveryRoot) {
  for (int root = 0; root < GetParam(); ++root) {
    for (const size_t count : {size_t{0}, size_t{1}, size_t{200'001}}) {
      const std::vector<float> expected = ValuesOfRank(root, count);
      RunExchanges(GetParam(), [&](const Exchange& exchange) {
        std::vector<float> data = ValuesOfRank(exchange.transport.self(), count);
        TreeBroadcast(exchange, BufferOf(data), root, Soon());
        EXPECT_EQ(data, expected) << "from rank " << root;
      });
    }
  }
}

TEST_P(TreeTest, NoRankLeavesTheBarrierBeforeTheLastOneHasArrived) {
  for (int round = 0; round < 20; ++round) {
    std::atomic<int> arrived = 0;
    RunExchanges(GetParam(), [&](const Exchange& exchange) {
      ++arrived;
      DisseminationBarrier(exchange, Soon());
      EXPECT_EQ(arrived, GetParam());
    });
  }
}
INSTANTIATE_TEST_SUITE_P(Worlds, TreeTest, ::testing::Range(1, 10));

TEST(TreeFailure, NamesTheRankThatLeft) {
  std::vector<float> data(10);
  ExpectTheRankThatLeftIsNamed([&](const Exchange& exchange) {
    TreeBroadcast(exchange, BufferOf(data), /*root=*/1, Soon());
  });
  ExpectTheRankThatLeftIsNamed(
      [](const Exchange& exchange) { DisseminationBarrier(exchange, Soon()); });
}

}  // namespace
}  // namespace hearth::collective
