#include "hearth/dataset/order/permutation.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <vector>

namespace hearth::dataset {
namespace {

std::vector<int64_t> AllOf(int64_t size, uint64_t key) {
  const Permutation permutation(size, key);
  std::vector<int64_t> all;
  for (int64_t i = 0; i < size; ++i) all.push_back(permutation.At(i));
  return all;
}

TEST(Permutation, HasEachNumberOnceWhateverTheSize) {
  for (int64_t size : {0, 1, 2, 3, 5, 63, 64, 65, 1000, 4095, 4096, 4097, 100'000}) {
    std::vector<int64_t> all = AllOf(size, 1);
    std::sort(all.begin(), all.end());
    for (int64_t i = 0; i < size; ++i) ASSERT_EQ(all[i], i) << size;
  }
}

TEST(Permutation, DependsOnItsKeyOnly) {
  EXPECT_EQ(AllOf(1000, 1), AllOf(1000, 1));
  EXPECT_NE(AllOf(1000, 1), AllOf(1000, 2));
}

TEST(Permutation, NeighboursAreSeparated) {
  const auto all = AllOf(100'000, 3);
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

TEST(Permutation, FewNumbersGetManyOrders) {
  std::vector<std::vector<int64_t>> seen;
  for (uint64_t key = 0; key < 2000; ++key) seen.push_back(AllOf(4, key));
  std::sort(seen.begin(), seen.end());
  seen.erase(std::unique(seen.begin(), seen.end()), seen.end());
  EXPECT_EQ(seen.size(), 24u) << "all orders of 4 numbers";
}

}  // namespace
}  // namespace hearth::dataset
