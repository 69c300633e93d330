#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstdint>
#include <mutex>
#include <vector>

#include "hearth/collective/algorithms/testing/algorithms_testing.h"
#include "hearth/collective/operation/half.h"

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

// For 0 and -0, kMin and kMax return their first argument, so the sign of the result shows the
// order.
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

// A sum of NaNs has the bits of one of them.
TEST_P(RecursiveDoublingTest, AllRanksGetTheSameNan) {
  for (const Op op : {Op::kSum, Op::kMin, Op::kMax}) {
    std::vector<uint32_t> found(static_cast<size_t>(GetParam()));
    RunExchanges(GetParam(), [&](const Exchange& exchange) {
      const auto self = static_cast<uint32_t>(exchange.transport.self());
      std::vector<float> data = {std::bit_cast<float>(0x7fc00000U | self)};
      RecursiveDoublingAllReduce(exchange, BufferOf(data), op, Soon());
      found[self] = std::bit_cast<uint32_t>(data[0]);
    });
    EXPECT_EQ(found, std::vector<uint32_t>(found.size(), found[0])) << NameOf(op);
    EXPECT_TRUE(std::isnan(std::bit_cast<float>(found[0]))) << NameOf(op);
  }
}

TEST_P(RecursiveDoublingTest, SumsIntegersAndNarrowFloats) {
  const int world = GetParam();
  RunExchanges(world, [&](const Exchange& exchange) {
    const int self = exchange.transport.self();
    std::vector<int32_t> integers = {self + 1, -self};
    RecursiveDoublingAllReduce(exchange, BufferOf(integers, DataType::kInt32), Op::kSum, Soon());
    EXPECT_EQ(integers, (std::vector<int32_t>{world * (world + 1) / 2, -world * (world - 1) / 2}));
    std::vector<Bfloat16> narrow = {ToBfloat16(static_cast<float>(self) + 1)};
    RecursiveDoublingAllReduce(exchange, BufferOf(narrow, DataType::kBfloat16), Op::kSum, Soon());
    const int sum = world * (world + 1) / 2;
    EXPECT_EQ(ToFloat(narrow[0]), static_cast<float>(sum));
  });
}
INSTANTIATE_TEST_SUITE_P(Worlds, RecursiveDoublingTest, ::testing::Values(1, 2, 4, 8, 16));

// The scratch memory still contains the values of the previous, larger sum.
TEST(RecursiveDoublingScratch, IsReusedForFewerElements) {
  RunExchanges(4, [](const Exchange& exchange) {
    for (const size_t count : {size_t{1000}, size_t{5}, size_t{0}, size_t{7}}) {
      std::vector<float> data = ValuesOfRank(exchange.transport.self(), count);
      RecursiveDoublingAllReduce(exchange, BufferOf(data), Op::kSum, Soon());
      EXPECT_EQ(data, SumsOfRanks(4, count));
    }
  });
}

// Returns the errors of eight ranks of which some call a barrier and the others an all-reduce: rank
// r calls the barrier if bit r of `others` is set.
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

// No rank waits until its deadline, although rank r may wait for a rank that waits for another one.
TEST(RecursiveDoublingFailure, RanksInAnotherCallAreDetected) {
  for (unsigned others = 1; others < 0xff; ++others) {
    const std::vector<ErrorCode> codes = ErrorsOfMismatch(others);
    EXPECT_THAT(codes, ::testing::Contains(ErrorCode::kInvalidArgument)) << others;
    EXPECT_THAT(codes, ::testing::Each(
                           ::testing::AnyOf(ErrorCode::kInvalidArgument, ErrorCode::kUnavailable)))
        << others;
  }
}

// The three ranks that exchange data with rank 5 name it. The others name a rank that failed
// because of rank 5.
TEST(RecursiveDoublingFailure, NamesTheRankThatLeft) {
  RunExchanges(8, [](const Exchange& exchange) {
    const int self = exchange.transport.self();
    if (self == 5) return;
    std::vector<float> data(10);
    const Error error =
        Thrown([&] { RecursiveDoublingAllReduce(exchange, BufferOf(data), Op::kSum, Soon()); });
    EXPECT_EQ(error.code(), ErrorCode::kUnavailable);
    const bool is_partner = std::has_single_bit(static_cast<unsigned>(self ^ 5));
    EXPECT_THAT(error.message(), ::testing::HasSubstr(is_partner ? "rank 5 on" : "rank "));
  });
}

}  // namespace
}  // namespace hearth::collective
