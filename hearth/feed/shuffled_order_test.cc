#include "hearth/feed/shuffled_order.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <vector>

namespace hearth::feed {
namespace {

std::vector<int64_t> OrderOf(int64_t rows, uint64_t seed, uint64_t epoch) {
  const ShuffledOrder order(rows, seed, epoch);
  std::vector<int64_t> all;
  for (int64_t i = 0; i < rows; ++i) all.push_back(order.At(i));
  return all;
}

TEST(ShuffledOrder, IsAPermutationForEveryNumberOfRows) {
  for (int64_t rows : {0, 1, 2, 3, 5, 63, 64, 65, 1000, 4095, 4096, 4097, 100'000}) {
    std::vector<int64_t> all = OrderOf(rows, 1, 1);
    std::sort(all.begin(), all.end());
    for (int64_t i = 0; i < rows; ++i) ASSERT_EQ(all[i], i) << rows;
  }
}

TEST(ShuffledOrder, DependsOnSeedAndEpochOnly) {
  const auto first = OrderOf(1000, 1, 1);
  EXPECT_EQ(first, OrderOf(1000, 1, 1));
  EXPECT_NE(first, OrderOf(1000, 1, 2));
  EXPECT_NE(first, OrderOf(1000, 2, 1));
}

TEST(ShuffledOrder, NeighboursAreTornApart) {
  const auto all = OrderOf(100'000, 3, 1);
  int64_t close = 0;
  int64_t at_home = 0;
  double distance = 0;
  for (size_t i = 1; i < all.size(); ++i) {
    close += std::abs(all[i] - all[i - 1]) <= 10;
    at_home += all[i] == static_cast<int64_t>(i);
    distance += static_cast<double>(std::abs(all[i] - all[i - 1]));
  }
  EXPECT_LT(close, 60) << "20 are expected of a random order";
  EXPECT_LT(at_home, 10) << "1 is expected";
  EXPECT_NEAR(distance / 1e5, 1e5 / 3, 500) << "as in a random order";
}

TEST(ShuffledOrder, FewRowsSeeManyOrders) {
  std::vector<std::vector<int64_t>> seen;
  for (uint64_t epoch = 0; epoch < 2000; ++epoch) seen.push_back(OrderOf(4, 5, epoch));
  std::sort(seen.begin(), seen.end());
  seen.erase(std::unique(seen.begin(), seen.end()), seen.end());
  EXPECT_EQ(seen.size(), 24u) << "all orders of 4 rows";
}

}  // namespace
}  // namespace hearth::feed
