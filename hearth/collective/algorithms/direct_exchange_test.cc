#include <gtest/gtest.h>

#include <vector>

#include "hearth/collective/algorithms/testing/algorithms_testing.h"

namespace hearth::collective {
namespace {

class DirectAllReduceTest : public ::testing::TestWithParam<int> {};

TEST_P(DirectAllReduceTest, SumsAnyNumberOfElements) {
  ExpectExactSums(GetParam(), &DirectAllReduce);
}
TEST_P(DirectAllReduceTest, FindsTheMinimumAndTheMaximum) {
  ExpectMinimumAndMaximum(GetParam(), &DirectAllReduce);
}
TEST_P(DirectAllReduceTest, AllRanksGetTheSameBits) {
  ExpectTheSameBits(GetParam(), &DirectAllReduce);
}
INSTANTIATE_TEST_SUITE_P(Worlds, DirectAllReduceTest, ::testing::Range(1, 10));

// The scratch memory still contains the values of the previous, larger sum.
TEST(DirectAllReduceScratch, IsReusedForFewerElements) {
  RunExchanges(3, [](const Exchange& exchange) {
    for (const size_t count : {size_t{1000}, size_t{5}, size_t{0}, size_t{7}}) {
      std::vector<float> data = ValuesOfRank(exchange.transport.self(), count);
      DirectAllReduce(exchange, BufferOf(data), Op::kSum, Soon());
      EXPECT_EQ(data, SumsOfRanks(3, count));
    }
  });
}

TEST(DirectAllReduceFailure, NamesTheRankThatLeft) {
  std::vector<float> data(10);
  ExpectTheRankThatLeftIsNamed([&](const Exchange& exchange) {
    DirectAllReduce(exchange, BufferOf(data), Op::kSum, Soon());
  });
}

}  // namespace
}  // namespace hearth::collective
