#include "hearth/caffe/tensor/random.h"

#include <gtest/gtest.h>

#include <set>

namespace hearth::caffe {
namespace {

TEST(MixSeed, DiffersByRank) {
  std::set<uint64_t> seeds;
  for (uint64_t seed = 0; seed < 10; ++seed) {
    for (uint64_t rank = 0; rank < 10; ++rank) seeds.insert(MixSeed(seed, rank));
  }
  EXPECT_EQ(seeds.size(), 100u);
}

}  // namespace
}  // namespace hearth::caffe
