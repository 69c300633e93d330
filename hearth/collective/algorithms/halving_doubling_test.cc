#include <gtest/gtest.h>

#include <vector>

#include "hearth/collective/algorithms/testing/algorithms_testing.h"

namespace hearth::collective {
namespace {

// Numbers of ranks: powers of two, and one to seven ranks more than a power of two.
class HalvingDoublingTest : public ::testing::TestWithParam<int> {};

TEST_P(HalvingDoublingTest, SumsAnyNumberOfElements) {
  ExpectExactSums(GetParam(), &HalvingDoublingAllReduce);
}
TEST_P(HalvingDoublingTest, FindsTheMinimumAndTheMaximum) {
  ExpectMinimumAndMaximum(GetParam(), &HalvingDoublingAllReduce);
}
TEST_P(HalvingDoublingTest, AllRanksGetTheSameBits) {
  ExpectTheSameBits(GetParam(), &HalvingDoublingAllReduce);
}
INSTANTIATE_TEST_SUITE_P(Worlds, HalvingDoublingTest,
                         ::testing::Values(1, 2, 3, 4, 5, 7, 8, 9, 15));

TEST(HalvingDoublingFailure, NamesTheRankThatLeft) {
  std::vector<float> data(10);
  ExpectTheRankThatLeftIsNamed([&](const Exchange& exchange) {
    HalvingDoublingAllReduce(exchange, BufferOf(data), Op::kSum, Soon());
  });
}

// Rank 2 of three is beyond the power of two, so only rank 0 exchanges data with it.
TEST(HalvingDoublingFailure, OfARankBeyondThePowerOfTwoReachesAllRanks) {
  RunExchanges(3, [](const Exchange& exchange) {
    if (exchange.transport.self() == 2) return;
    std::vector<float> data(10);
    const ErrorCode code =
        CodeOf([&] { HalvingDoublingAllReduce(exchange, BufferOf(data), Op::kSum, Soon()); });
    EXPECT_EQ(code, ErrorCode::kUnavailable);
  });
}

}  // namespace
}  // namespace hearth::collective
