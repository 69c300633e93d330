#include "hearth/caffe/random.h"

#include <gtest/gtest.h>

#include <set>

#include "hearth/base/error.h"

namespace hearth::caffe {
namespace {

TEST(Random, GoesOnAfterLoadingAsIfItHadNotStopped) {
  Random random(7);
  for (int i = 0; i < 100; ++i) random.Gaussian(0, 1);
  const std::string state = random.SaveState();
  const float next = random.Gaussian(0, 1);
  Random other(8);
  other.LoadState(state);
  EXPECT_EQ(other.Gaussian(0, 1), next);
}

TEST(Random, RefusesADamagedState) {
  Random random(7);
  const std::string before = random.SaveState();
  EXPECT_THROW(random.LoadState("12 abc"), Error);
  EXPECT_THROW(random.LoadState(before.substr(0, before.size() / 2)), Error);
  EXPECT_EQ(random.SaveState(), before);
}

TEST(MixSeed, GivesEveryRankAnotherSeed) {
  std::set<uint64_t> seeds;
  for (uint64_t seed = 0; seed < 10; ++seed) {
    for (uint64_t rank = 0; rank < 10; ++rank) seeds.insert(MixSeed(seed, rank));
  }
  EXPECT_EQ(seeds.size(), 100u);
}

}  // namespace
}  // namespace hearth::caffe
