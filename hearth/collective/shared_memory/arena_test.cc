#include "hearth/collective/shared_memory/arena.h"

#include <gtest/gtest.h>

#include <cstring>

#include "hearth/base/error.h"
#include "hearth/base/testing/deadline_testing.h"
#include "hearth/collective/testing/local_ranks_testing.h"

namespace hearth::collective {
namespace {

TEST(Arena, AllRanksFindTheCorrespondingMemory) {
  RunLocal(3, [&](LocalRanks& ranks) {
    Arena arena(ranks);
    std::byte* own = arena.Allocate(10000, Soon());
    std::memset(own, ranks.self() + 1, 10000);
    ranks.Synchronize(Soon());
    const auto location = arena.Find(own + 100, 200);
    ASSERT_TRUE(location.has_value());
    for (int i = 0; i < 3; ++i) EXPECT_EQ(*arena.At(*location, i), static_cast<std::byte>(i + 1));
    ranks.Synchronize(Soon());
  });
}

TEST(Arena, MemoryOutsideOrAcrossTheEndIsNotFound) {
  RunLocal(1, [&](LocalRanks& ranks) {
    Arena arena(ranks);
    std::byte* own = arena.Allocate(4096, Soon());
    const int other = 0;
    EXPECT_FALSE(arena.Find(&other, sizeof(other)).has_value());
    EXPECT_FALSE(arena.Find(own + 4000, 97).has_value());
    EXPECT_TRUE(arena.Find(own + 4000, 96).has_value());
  });
}

TEST(Arena, RanksThatAllocateDifferentSizesGetAnError) {
  RunLocal(2, [&](LocalRanks& ranks) {
    Arena arena(ranks);
    EXPECT_THROW(arena.Allocate(ranks.self() == 0 ? 100 : 200, Soon()), Error);
  });
}

}  // namespace
}  // namespace hearth::collective
