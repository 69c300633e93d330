// Tests a cluster of many ranks that all connect at once.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <string>
#include <utility>
#include <vector>

#include "hearth/rendezvous/testing/cluster_testing.h"
#include "hearth/rendezvous/testing/reset_testing.h"

namespace hearth::rendezvous {
namespace {

using testing::Each;
using testing::HasSubstr;

constexpr int kRanks = 256;
constexpr int kDying = 100;

CoordinatorOptions ManyOptions() {
  CoordinatorOptions options = TestOptions(kRanks);
  options.reserve_timeout_s = 10;  // all ranks must have reserved within this time
  return options;
}

// Simulates a rank whose machine fails after the handshake and before the reservation.
void JoinAndDie(const CoordinatorOptions& options, int port) {
  const Deadline soon = Deadline::After(10);
  Connection connection = Connection::Connect("127.0.0.1", port, soon);
  OfferHandshake(connection, Credentials(options.token, kControlService),
                 {options.generation, kDying}, soon);
  Reset(std::move(connection));
}

TEST(ManyRanks, ReserveWithinTenSeconds) {
  const CoordinatorOptions options = ManyOptions();
  Coordinator coordinator(options);
  std::atomic<int> count = 0;
  RunMembers(options, coordinator.port(), [&count](Member& member) {
    member.Barrier("all of them", Deadline::After(10));
    ++count;
  });
  EXPECT_EQ(count, kRanks);
  EXPECT_EQ(coordinator.WaitForReservations(Deadline::After(10)).size(),
            static_cast<size_t>(kRanks));
  EXPECT_EQ(coordinator.refusals().total(), 0);
}

TEST(ManyRanks, ARankThatDiesWhileJoiningIsReportedToAll) {
  const CoordinatorOptions options = ManyOptions();
  Coordinator coordinator(options);
  std::vector<std::string> messages(kRanks);
  std::vector<Thread> threads;
  for (int rank = 0; rank < kRanks; ++rank) {
    threads.emplace_back("rank", [&, rank] {
      if (rank == kDying) return JoinAndDie(options, coordinator.port());
      Member member(OptionsOf(options, coordinator.port(), rank));
      messages[rank] = Thrown([&member] { member.Reserve({}); }).message();
    });
  }
  for (Thread& thread : threads) thread.Join();
  messages.erase(messages.begin() + kDying);
  EXPECT_THAT(messages, Each(HasSubstr("rank 100 on host 127.0.0.1")));
  EXPECT_THAT(messages, Each(HasSubstr("went away")));
}

}  // namespace
}  // namespace hearth::rendezvous
