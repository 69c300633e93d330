#include <gtest/gtest.h>

#include <cmath>
#include <mutex>
#include <vector>

#include "hearth/collective/algorithms/testing/algorithms_testing.h"

namespace hearth::collective {
namespace {

class RecursiveDoublingTest : public ::testing::TestWithParam<int> {};

TEST_P(RecursiveDoublingTest, SumsAnyNumberOfElements) {
  ExpectExactSums(GetParam(), &RecursiveDoublingAllReduce);
}
TEST_P(RecursiveDoublingTest, FindsTheMinimumAndTheMaximum) {
  ExpectMinimumAndMaximum(GetParam(), &RecursiveDoublingAllReduce);
}
TEST_P(RecursiveDoublingTest, AllRanksGetTheSameBits) {
  ExpectTheSameBits(GetParam(), &RecursiveDoublingAllReduce);
}

// Of 0 and -0, both operators return the first.
TEST_P(RecursiveDoublingTest, AllRanksCombineInTheSameOrder) {
  for (const Op op : {Op::kMin, Op::kMax}) {
    for (int negative = 0; negative < GetParam(); ++negative) {
      std::vector<int> signs(static_cast<size_t>(GetParam()));
      RunExchanges(GetParam(), [&](const Exchange& exchange) {
        const int self = exchange.transport.self();
        std::vector<float> data = {self == negative ? -0.0F : 0.0F};
        RecursiveDoublingAllReduce(exchange, BufferOf(data), op, Soon());
        signs[static_cast<size_t>(self)] = std::signbit(data[0]) ? -1 : 1;
      });
      EXPECT_EQ(signs, std::vector<int>(signs.size(), signs[0])) << "-0 on rank " << negative;
    }
  }
}
INSTANTIATE_TEST_SUITE_P(Worlds, RecursiveDoublingTest, ::testing::Values(1, 2, 4, 8, 16));

// The scratch memory has values of the larger sum then.
TEST(RecursiveDoublingScratch, IsReusedForFewerElements) {
  RunExchanges(4, [](const Exchange& exchange) {
    for (const size_t count : {size_t{1000}, size_t{5}, size_t{0}, size_t{7}}) {
      std::vector<float> data = ValuesOfRank(exchange.transport.self(), count);
      RecursiveDoublingAllReduce(exchange, BufferOf(data), Op::kSum, Soon());
      EXPECT_EQ(data, SumsOfRanks(4, count));
    }
  });
}

// The errors of eight ranks of which those in `others` call a barrier instead.
std::vector<ErrorCode> ErrorsOfMismatch(unsigned others) {
  std::vector<ErrorCode> codes;
  std::mutex mutex;
  RunExchanges(8, [&](const Exchange& exchange) {
    const bool other = ((others >> exchange.transport.self()) & 1U) != 0;
    exchange.transport.Begin(
        {.operation = other ? Operation::kBarrier : Operation::kAllReduce, .bytes = 40});
    std::vector<float> data(10);
    const Deadline deadline = Deadline::After(10);
    const ErrorCode code = CodeOf([&] {
      if (other) return DisseminationBarrier(exchange, deadline);
      RecursiveDoublingAllReduce(exchange, BufferOf(data), Op::kSum, deadline);
    });
    const std::lock_guard lock(mutex);
    codes.push_back(code);
  });
  return codes;
}

// No rank waits for its deadline: rank r may await a rank that awaits another one.
TEST(RecursiveDoublingFailure, RanksInAnotherCallAreDetected) {
  for (unsigned others = 1; others < 0xff; ++others) {
    const std::vector<ErrorCode> codes = ErrorsOfMismatch(others);
    EXPECT_THAT(codes, ::testing::Contains(ErrorCode::kInvalidArgument)) << others;
    EXPECT_THAT(codes, ::testing::Each(
                           ::testing::AnyOf(ErrorCode::kInvalidArgument, ErrorCode::kUnavailable)))
        << others;
  }
}

TEST(RecursiveDoublingFailure, NamesTheRankThatLeft) {
  std::vector<float> data(10);
  ExpectTheRankThatLeftIsNamed([&](const Exchange& exchange) {
    RecursiveDoublingAllReduce(exchange, BufferOf(data), Op::kSum, Soon());
  });
}

}  // namespace
}  // namespace hearth::collective
