#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

#include "hearth/collective/algorithms/testing/algorithms_testing.h"

namespace hearth::collective {
namespace {

class NarrowAllReduceTest : public ::testing::TestWithParam<int> {};

// Sums `ranks` ranks that all contribute `values`; each must get `expected`.
void ExpectOnAllRanks(int ranks, Wire wire, const std::vector<float>& values,
                      const std::vector<float>& expected) {
  RunExchanges(ranks, [&](const Exchange& exchange) {
    std::vector<float> data = values;
    NarrowAllReduce(exchange, BufferOf(data), wire, Soon());
    EXPECT_EQ(data, expected);
  });
}

// Integers up to 2^8 are exact in both types.
TEST_P(NarrowAllReduceTest, SumsAnyNumberOfElements) {
  for (const Wire wire : {Wire::kFloat16, Wire::kBfloat16}) {
    for (const size_t count : CountsFor(GetParam())) {
      std::vector<float> values(count), sums(count);
      for (size_t i = 0; i < count; ++i) {
        values[i] = static_cast<float>(i % 11);
        sums[i] = values[i] * static_cast<float>(GetParam());
      }
      ExpectOnAllRanks(GetParam(), wire, values, sums);
    }
  }
}

// Neither type can represent the ranks' values exactly. The owner of a part must not keep its more
// exact sum.
TEST_P(NarrowAllReduceTest, AllRanksGetTheSameBits) {
  constexpr size_t kCount = 1003;
  for (const Wire wire : {Wire::kFloat16, Wire::kBfloat16}) {
    std::vector<std::vector<float>> results(static_cast<size_t>(GetParam()));
    RunExchanges(GetParam(), [&](const Exchange& exchange) {
      const auto self = static_cast<size_t>(exchange.transport.self());
      std::vector<float> data(kCount);
      for (size_t i = 0; i < kCount; ++i) data[i] = 1.0F / static_cast<float>(3 + 7 * i + self);
      NarrowAllReduce(exchange, BufferOf(data), wire, Soon());
      results[self] = data;
    });
    for (const std::vector<float>& result : results) EXPECT_EQ(result, results.front());
  }
}
INSTANTIATE_TEST_SUITE_P(Worlds, NarrowAllReduceTest, ::testing::Range(1, 10));

TEST(NarrowAllReduceWindows, AreAllSummed) {
  const size_t count = (1 << 20) + 5;  // three windows
  std::vector<float> values(count), sums(count);
  for (size_t i = 0; i < count; ++i) sums[i] = 2 * (values[i] = static_cast<float>(i % 101));
  ExpectOnAllRanks(2, Wire::kBfloat16, values, sums);
}

TEST(NarrowAllReduceRounding, IsOfTheWholeSumOnly) {
  RunExchanges(4, [](const Exchange& exchange) {
    // bfloat16 can represent the sum 260, but would round the partial sum 257 to 256.
    std::vector<float> data = {
        std::vector<float>{256, 1, 1, 2}[static_cast<size_t>(exchange.transport.self())]};
    NarrowAllReduce(exchange, BufferOf(data), Wire::kBfloat16, Soon());
    EXPECT_EQ(data[0], 260);
  });
}

TEST(NarrowAllReduceRounding, KeepsInfinitiesAndNans) {
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  ExpectOnAllRanks(2, Wire::kFloat16, {70'000, -70'000, 1}, {kInfinity, -kInfinity, 2});
  ExpectOnAllRanks(2, Wire::kBfloat16, {70'000, kInfinity}, {140'288, kInfinity});
  RunExchanges(2, [](const Exchange& exchange) {
    std::vector<float> data = {exchange.transport.self() == 1 ? std::nanf("") : 1};
    NarrowAllReduce(exchange, BufferOf(data), Wire::kFloat16, Soon());
    EXPECT_TRUE(std::isnan(data[0]));
  });
}

TEST(NarrowAllReduceFailure, NamesTheRankThatLeft) {
  std::vector<float> data(10);
  ExpectTheRankThatLeftIsNamed([&](const Exchange& exchange) {
    NarrowAllReduce(exchange, BufferOf(data), Wire::kFloat16, Soon());
  });
}

}  // namespace
}  // namespace hearth::collective
