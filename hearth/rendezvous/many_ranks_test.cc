// A cluster of many ranks, which all come at once.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <string>
#include <utility>
#include <vector>

#include "hearth/rendezvous/cluster_testing.h"
#include "hearth/rendezvous/stranger_testing.h"

namespace hearth::rendezvous {
namespace {

using testing::Each;
using testing::HasSubstr;

constexpr int kRanks = 256;
constexpr int kDying = 100;

CoordinatorOptions ManyOptions() {
  CoordinatorOptions options = TestOptions(kRanks);
  options.reserve_timeout_s = 10;  // all of them must have met by then
  return options;
}

// A rank whose machine goes down after it has proved itself and before it has said where it is.
void JoinAndDie(const CoordinatorOptions& options, int port) {
  const Deadline soon = Deadline::After(10);
  Connection connection = Connection::Connect("127.0.0.1", port, soon);
  OfferHandshake(connection, Credentials(options.token, kControlService),
                 {options.generation, kDying}, soon);
  Reset(std::move(connection));
}

TEST(ManyRanks, MeetWithinTenSeconds) {
  const CoordinatorOptions options = ManyOptions();
  Coordinator coordinator(options);
  std::atomic<int> met = 0;
  RunMembers(options, coordinator.port(), [&met](Member& member) {
    member.Barrier("all of them", Deadline::After(10));
    ++met;
  });
  EXPECT_EQ(met, kRanks);
  EXPECT_EQ(coordinator.WaitRoster(Deadline::After(10)).size(), static_cast<size_t>(kRanks));
  EXPECT_EQ(coordinator.refusals().total(), 0);
}

TEST(ManyRanks, OneThatDiesWhileJoiningIsNamedToAllOthers) {
  const CoordinatorOptions options = ManyOptions();
  Coordinator coordinator(options);
  std::vector<std::string> heard(kRanks);
  std::vector<Thread> threads;
  for (int rank = 0; rank < kRanks; ++rank) {
    threads.emplace_back("rank", [&, rank] {
      if (rank == kDying) return JoinAndDie(options, coordinator.port());
      Member member(OptionsOf(options, coordinator.port(), rank));
      heard[rank] = Thrown([&member] { member.Reserve({}); }).message();
    });
  }
  for (Thread& thread : threads) thread.Join();
  heard.erase(heard.begin() + kDying);
  EXPECT_THAT(heard, Each(HasSubstr("rank 100 on host 127.0.0.1")));
  EXPECT_THAT(heard, Each(HasSubstr("went away")));
}

}  // namespace
}  // namespace hearth::rendezvous
