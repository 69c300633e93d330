#include "hearth/collective/step_reporter.h"

#include <gtest/gtest.h>

#include <future>
#include <optional>
#include <vector>

#include "hearth/base/testing/deadline_testing.h"
#include "hearth/base/testing/error_testing.h"
#include "hearth/base/thread.h"
#include "hearth/rendezvous/testing/cluster_testing.h"

namespace hearth::collective {
namespace {

using rendezvous::GroupStep;
using Ranks = std::vector<int>;

GroupStep StepOf(int rank, uint64_t step) { return {"group", rank, 3, step}; }

TEST(ThreadStepReporter, NamesTheRanksThatHaveNotReachedAStep) {
  const auto reporter = MakeThreadStepReporter();
  EXPECT_EQ(reporter->RanksBehind(StepOf(0, 1)), Ranks()) << "nothing is known of the group";
  reporter->Report(StepOf(0, 7));
  reporter->Report(StepOf(2, 6));
  EXPECT_EQ(reporter->RanksBehind(StepOf(0, 7)), (Ranks{1, 2}));
  EXPECT_EQ(reporter->RanksBehind(StepOf(0, 6)), Ranks{1});
  EXPECT_EQ(reporter->RanksBehind({"another group", 0, 3, 7}), Ranks());
}

TEST(ThreadStepReporter, CanBeUsedByAllRanksAtOnce) {
  const auto reporter = MakeThreadStepReporter();
  std::vector<Thread> threads;
  for (int rank = 0; rank < 3; ++rank) {
    threads.emplace_back("rank", [&, rank] {
      for (uint64_t step = 1; step <= 1000; ++step) {
        reporter->Report(StepOf(rank, step));
        (void)reporter->RanksBehind(StepOf(rank, step));
      }
    });
  }
  for (Thread& thread : threads) thread.Join();
  EXPECT_EQ(reporter->RanksBehind(StepOf(0, 1000)), Ranks());
}

TEST(MemberStepReporter, AsksTheCoordinator) {
  const rendezvous::CoordinatorOptions options = rendezvous::TestOptions(2);
  rendezvous::Coordinator coordinator(options);
  rendezvous::RunMembers(options, coordinator.port(), [](rendezvous::Member& member) {
    const auto reporter = MakeStepReporter(member);
    const GroupStep step = {"group", member.rank(), 2, 5};
    if (member.rank() == 0) {
      reporter->Report(step);
      EXPECT_EQ(reporter->RanksBehind(step), Ranks{1});
    }
    member.Barrier("the first rank has asked", Soon());
    if (member.rank() == 1) reporter->Report(step);
    member.Barrier("both have reported", Soon());  // a member's messages are processed in order
    EXPECT_EQ(reporter->RanksBehind(step), Ranks());
  });
}

TEST(MemberStepReporter, KnowsNothingOnceTheCoordinatorIsLost) {
  const rendezvous::CoordinatorOptions options = rendezvous::TestOptions(1);
  std::optional<rendezvous::Coordinator> coordinator(std::in_place, options);
  rendezvous::Member member(rendezvous::OptionsOf(options, coordinator->port(), 0));
  member.Reserve(nullptr);
  std::promise<void> lost;
  const auto subscription = member.OnFailure([&](const auto&) { lost.set_value(); });
  coordinator.reset();
  lost.get_future().wait();
  const auto reporter = MakeStepReporter(member);
  const GroupStep step = {"group", 0, 1, 5};
  reporter->Report(step);
  EXPECT_EQ(reporter->RanksBehind(step), std::nullopt);
}

}  // namespace
}  // namespace hearth::collective
