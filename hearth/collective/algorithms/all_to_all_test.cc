#include <gtest/gtest.h>

#include <vector>

#include "hearth/collective/algorithms/testing/algorithms_testing.h"

namespace hearth::collective {
namespace {

class DirectAllToAllTest : public ::testing::TestWithParam<int> {};

// Element i of the block from rank a to rank b is a * 10000 + b * 1000 + i % 1000.
std::vector<int64_t> BlocksFrom(int from, int ranks, size_t block) {
  std::vector<int64_t> blocks;
  for (int to = 0; to < ranks; ++to) {
    for (size_t i = 0; i < block; ++i) {
      blocks.push_back(from * 10'000 + to * 1000 + static_cast<int64_t>(i % 1000));
    }
  }
  return blocks;
}

TEST_P(DirectAllToAllTest, EachRankGetsItsBlockOfEveryRank) {
  const int ranks = GetParam();
  for (const size_t block : {size_t{0}, size_t{1}, size_t{70'000}}) {
    RunExchanges(ranks, [&](const Exchange& exchange) {
      const int self = exchange.transport.self();
      const std::vector<int64_t> input = BlocksFrom(self, ranks, block);
      std::vector<int64_t> output(input.size(), -1), expected;
      for (int from = 0; from < ranks; ++from) {
        for (size_t i = 0; i < block; ++i) {
          expected.push_back(from * 10'000 + self * 1000 + static_cast<int64_t>(i % 1000));
        }
      }
      DirectAllToAll(exchange, reinterpret_cast<const std::byte*>(input.data()),
                     BufferOf(output, DataType::kInt64), Soon());
      EXPECT_EQ(output, expected) << "blocks of " << block;
    });
  }
}
INSTANTIATE_TEST_SUITE_P(Worlds, DirectAllToAllTest, ::testing::Range(1, 10));

TEST(DirectAllToAllFailure, NamesTheRankThatLeft) {
  const std::vector<int64_t> input(2);
  std::vector<int64_t> output(2);
  ExpectTheRankThatLeftIsNamed([&](const Exchange& exchange) {
    DirectAllToAll(exchange, reinterpret_cast<const std::byte*>(input.data()),
                   BufferOf(output, DataType::kInt64), Soon());
  });
}

}  // namespace
}  // namespace hearth::collective
