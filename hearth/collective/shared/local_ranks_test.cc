#include "hearth/collective/shared/local_ranks.h"

#include <gtest/gtest.h>

#include <cstring>
#include <memory>
#include <vector>

#include "hearth/base/error.h"
#include "hearth/base/testing/deadline_testing.h"
#include "hearth/base/thread.h"
#include "hearth/collective/shared/arena.h"

namespace hearth::collective {
namespace {

// Runs `body` for each of `count` ranks in a separate thread.
template <typename Body>
void RunLocal(int count, const Body& body) {
  std::vector<OwnPage> pages;
  for (int i = 0; i < count; ++i) pages.push_back(CreateSharedPage());
  std::vector<Thread> threads;
  for (int self = 0; self < count; ++self) {
    threads.emplace_back("rank", [&, self] {
      std::vector<LocalRanks::Member> members;
      for (int i = 0; i < count; ++i) {
        const PageAddress& address = pages[static_cast<size_t>(i)].address;
        members.push_back({{i, "here"}, address.pid, std::move(*OpenSharedPage(address))});
      }
      LocalRanks ranks(std::move(members), self, std::make_shared<AbortSignal>());
      body(ranks);
    });
  }
  for (Thread& thread : threads) thread.Join();
}

TEST(LocalRanks, SynchronizeMakesWritesVisible) {
  // Not atomic. Sanitizers do not see the ordering: each rank maps the pages separately.
  std::vector<int> written(4);
  RunLocal(4, [&](LocalRanks& ranks) {
    ranks.Begin({});
    for (int round = 1; round <= 200; ++round) {
      written[static_cast<size_t>(ranks.self())] = round;
      ranks.Synchronize(Soon());
      for (const int value : written) EXPECT_EQ(value, round);
      ranks.Synchronize(Soon());
    }
  });
}

TEST(LocalRanks, AMemberThatArrivedBeforeItLeftHasArrived) {
  RunLocal(2, [&](LocalRanks& ranks) {
    ranks.Begin({});
    ranks.Synchronize(Soon());
    ranks.Leave();
  });
}

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
