#include "hearth/dataset/order/shuffled_order.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <set>
#include <vector>

namespace hearth::dataset {
namespace {

constexpr int64_t kBlock = ShuffledOrder::kBlockRows;
constexpr int64_t kWindow = ShuffledOrder::kWindowRows;

std::vector<int64_t> ShuffledOrderOf(int64_t rows, uint64_t seed, uint64_t epoch) {
  ShuffledOrder order(rows, seed, epoch);
  std::vector<int64_t> all;
  for (int64_t i = 0; i < rows; ++i) all.push_back(order.At(i));
  return all;
}

TEST(ShuffledOrder, HasEveryRowOnceForAnyNumberOfRows) {
  for (int64_t rows : {int64_t{0}, int64_t{1}, int64_t{2}, kBlock - 1, kBlock, kBlock + 1,
                       kWindow - 1, kWindow, kWindow + 1, 7 * kWindow + 5 * kBlock + 3}) {
    std::vector<int64_t> all = ShuffledOrderOf(rows, 1, 1);
    std::sort(all.begin(), all.end());
    for (int64_t i = 0; i < rows; ++i) ASSERT_EQ(all[i], i) << rows;
  }
}

TEST(ShuffledOrder, DependsOnSeedAndEpochOnly) {
  const auto first = ShuffledOrderOf(1000, 1, 1);
  EXPECT_EQ(first, ShuffledOrderOf(1000, 1, 1));
  EXPECT_NE(first, ShuffledOrderOf(1000, 1, 2));
  EXPECT_NE(first, ShuffledOrderOf(1000, 2, 1));
}

TEST(ShuffledOrder, RandomAccessGivesTheSameOrder) {
  const int64_t rows = 3 * kWindow + 10;
  const auto all = ShuffledOrderOf(rows, 4, 2);
  ShuffledOrder order(rows, 4, 2);
  for (int64_t at : {rows - 1, int64_t{0}, kWindow, kWindow - 1, 2 * kWindow + 7, int64_t{1}}) {
    EXPECT_EQ(order.At(at), all[at]) << at;
  }
}

TEST(ShuffledOrder, MinibatchesSampleTheWholeDataset) {
  constexpr int64_t kMinibatch = 64;
  const int64_t rows = 20 * kWindow;
  const auto all = ShuffledOrderOf(rows, 3, 1);
  int64_t most_neighbours = 0;
  for (int64_t begin = 0; begin < rows; begin += kMinibatch) {
    std::set<int64_t> blocks;
    double sum = 0;
    for (int64_t i = begin; i < begin + kMinibatch; ++i) {
      blocks.insert(all[i] / kBlock);
      sum += static_cast<double>(all[i]);
    }
    most_neighbours = std::max<int64_t>(most_neighbours, kMinibatch - blocks.size());
    // The mean of 64 random rows has a standard deviation of 0.036 of all rows.
    EXPECT_NEAR(sum / kMinibatch / static_cast<double>(rows), 0.5, 0.22);
  }
  EXPECT_LT(most_neighbours, 24) << "64 of 256 blocks at random: about 7 rows share one";
}

TEST(ShuffledOrder, NeighboursInsideAWindowAreSeparated) {
  const auto all = ShuffledOrderOf(kWindow, 3, 1);
  int64_t close = 0;
  double distance = 0;
  for (size_t i = 1; i < all.size(); ++i) {
    close += std::abs(all[i] - all[i - 1]) <= 10;
    distance += static_cast<double>(std::abs(all[i] - all[i - 1]));
  }
  EXPECT_LT(close, 60) << "20 are expected of a random order";
  EXPECT_NEAR(distance / kWindow / kWindow, 1 / 3.0, 0.01) << "as in a random order";
}

TEST(ShuffledOrder, FewRowsGetManyOrders) {
  std::vector<std::vector<int64_t>> seen;
  for (uint64_t epoch = 0; epoch < 2000; ++epoch) seen.push_back(ShuffledOrderOf(4, 5, epoch));
  std::sort(seen.begin(), seen.end());
  seen.erase(std::unique(seen.begin(), seen.end()), seen.end());
  EXPECT_EQ(seen.size(), 24u) << "all orders of 4 rows";
}

}  // namespace
}  // namespace hearth::dataset
