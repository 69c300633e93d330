#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "hearth/collective/algorithms/testing/algorithms_testing.h"

namespace hearth::collective {
namespace {

class RingAlgorithmsTest : public ::testing::TestWithParam<int> {};

TEST_P(RingAlgorithmsTest, AllReduceSumsAnyNumberOfElements) {
  ExpectExactSums(GetParam(), &RingAllReduce);
}
TEST_P(RingAlgorithmsTest, AllReduceFindsTheMinimumAndTheMaximum) {
  ExpectMinimumAndMaximum(GetParam(), &RingAllReduce);
}
TEST_P(RingAlgorithmsTest, AllReduceGivesAllRanksTheSameBits) {
  ExpectTheSameBits(GetParam(), &RingAllReduce);
}

TEST_P(RingAlgorithmsTest, ReduceScatterSumsEachRanksPart) {
  for (const size_t count : CountsFor(GetParam())) {
    const std::vector<float> sums = SumsOfRanks(GetParam(), count);
    RunExchanges(GetParam(), [&](const Exchange& exchange) {
      const int self = exchange.transport.self();
      std::vector<float> data = ValuesOfRank(self, count);
      RingReduceScatter(exchange, BufferOf(data), Op::kSum, Soon());
      const Range part = Part(count, GetParam(), self);
      for (size_t i = part.begin; i < part.end; ++i) ASSERT_EQ(data[i], sums[i]) << i;
    });
  }
}

// Rank r contributes r * 50000 elements: rank 0 none, higher ranks several chunks.
TEST_P(RingAlgorithmsTest, AllGatherSendsUnequalParts) {
  std::vector<Range> parts;
  std::vector<double> expected;
  for (int rank = 0; rank < GetParam(); ++rank) {
    const size_t begin = expected.size();
    expected.resize(begin + static_cast<size_t>(rank) * 50'000, rank + 0.5);
    parts.push_back({begin, expected.size()});
  }
  RunExchanges(GetParam(), [&](const Exchange& exchange) {
    const Range own = parts[static_cast<size_t>(exchange.transport.self())];
    std::vector<double> data(expected.size(), -1);
    std::copy(expected.begin() + static_cast<ptrdiff_t>(own.begin),
              expected.begin() + static_cast<ptrdiff_t>(own.end),
              data.begin() + static_cast<ptrdiff_t>(own.begin));
    RingAllGather(exchange, BufferOf(data, DataType::kFloat64), parts, Soon());
    EXPECT_EQ(data, expected);
  });
}
INSTANTIATE_TEST_SUITE_P(Worlds, RingAlgorithmsTest, ::testing::Range(1, 10));

TEST(RingFailure, NamesTheRankThatLeft) {
  std::vector<float> data(10);
  const std::vector<Range> parts = {{0, 5}, {5, 10}};
  ExpectTheRankThatLeftIsNamed(
      [&](const Exchange& exchange) { RingAllReduce(exchange, BufferOf(data), Op::kSum, Soon()); });
  ExpectTheRankThatLeftIsNamed([&](const Exchange& exchange) {
    RingReduceScatter(exchange, BufferOf(data), Op::kSum, Soon());
  });
  ExpectTheRankThatLeftIsNamed(
      [&](const Exchange& exchange) { RingAllGather(exchange, BufferOf(data), parts, Soon()); });
}

}  // namespace
}  // namespace hearth::collective
