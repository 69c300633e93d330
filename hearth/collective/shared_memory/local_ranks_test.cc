#include "hearth/collective/shared_memory/local_ranks.h"

#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <thread>
#include <vector>

#include "hearth/base/error.h"
#include "hearth/base/testing/deadline_testing.h"
#include "hearth/base/testing/error_testing.h"
#include "hearth/collective/testing/local_ranks_testing.h"

namespace hearth::collective {
namespace {

TEST(LocalRanks, SynchronizeMakesWritesVisible) {
  // The elements are not atomic, so that the synchronisation must order the accesses. Thread
  // sanitizers cannot see this ordering, because each rank maps the pages separately.
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

// Rank 0 of two on a host with more ranks than cores. It yields while it waits for rank 1, which
// never arrives. Fails if it never stops yielding.
class YieldingRank : public testing::Test {
 protected:
  // `on_poll` is called before each check of the awaited condition, with the number of checks.
  ErrorCode AwaitRank1(Deadline deadline, const std::function<void(int)>& on_poll) {
    int polls = 0;
    const auto reached = [&] {
      on_poll(++polls);
      Require(polls < 1000, ErrorCode::kInternal, "{} polls without a look at the deadline", polls);
      return false;
    };
    return CodeOf([&] { ranks_.Await(1, deadline, reached); });
  }

  const std::shared_ptr<AbortSignal> abort_ = std::make_shared<AbortSignal>();

 private:
  static std::vector<OwnPage> TwoPages() {
    std::vector<OwnPage> pages;
    for (int i = 0; i < 2; ++i) pages.push_back(CreateSharedPage());
    return pages;
  }

  const std::vector<OwnPage> pages_ = TwoPages();
  LocalRanks ranks_{MembersOf(pages_), 0, abort_,
                    static_cast<int>(std::thread::hardware_concurrency()) + 1};
};

TEST_F(YieldingRank, IsAborted) {
  const auto abort_at_once = [&](int polls) {
    if (polls == 3) abort_->Raise("rank 2 failed");
  };
  EXPECT_EQ(AwaitRank1(Deadline::Never(), abort_at_once), ErrorCode::kAborted);
}

TEST_F(YieldingRank, MeetsItsDeadline) {
  EXPECT_EQ(AwaitRank1(Deadline::After(0.01), [](int) {}), ErrorCode::kDeadlineExceeded);
}

}  // namespace
}  // namespace hearth::collective
