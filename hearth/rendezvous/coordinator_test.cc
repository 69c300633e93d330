#include "hearth/rendezvous/coordinator.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <numeric>
#include <string>
#include <thread>
#include <vector>

#include "hearth/base/testing/deadline_testing.h"
#include "hearth/rendezvous/handshake.h"
#include "hearth/rendezvous/testing/cluster_testing.h"

namespace hearth::rendezvous {
namespace {

using testing::HasSubstr;

TEST(Coordinator, CollectsEveryRanksInfoByRank) {
  const auto options = TestOptions(3);
  Coordinator coordinator(options);
  RunMembers(options, coordinator.port(), [](Member&) {});
  const auto infos = coordinator.WaitForReservations(Soon());
  ASSERT_EQ(infos.size(), 3u);
  for (int rank = 0; rank < 3; ++rank) EXPECT_EQ(infos[rank], (Json{{"rank", rank}}));
}

TEST(Coordinator, AMissingReservationNamesTheRanksAndTheOthersHosts) {
  auto options = TestOptions(3);
  options.reserve_timeout_s = 0.2;
  Coordinator coordinator(options);
  Member member(OptionsOf(options, coordinator.port(), 1));
  const std::string expected =
      "within 0.2 s, ranks 0, 2 of 3 did not join the cluster; rank 1 joined from host host1";
  const Error there = Thrown([&] { member.Reserve({}); });
  EXPECT_EQ(there.code(), ErrorCode::kAborted);
  EXPECT_EQ(there.message(), expected);
  EXPECT_EQ(Thrown([&] { coordinator.WaitForReservations(Soon()); }).message(), expected);
  EXPECT_EQ(coordinator.failure()->code, ErrorCode::kDeadlineExceeded);
}

TEST(Coordinator, WithoutReservationsTheWaitTimesOut) {
  Coordinator coordinator(TestOptions(2));
  const Error error = Thrown([&] { coordinator.WaitForReservations(Deadline::After(0.02)); });
  EXPECT_EQ(error.code(), ErrorCode::kDeadlineExceeded);
  EXPECT_EQ(error.message(), "ranks 0, 1 of 2 did not join the cluster; no rank did");
}

TEST(Coordinator, EventsArriveInOrderWithTheirRank) {
  const auto options = TestOptions(1);
  Coordinator coordinator(options);
  RunMembers(options, coordinator.port(), [](Member& member) {
    member.SendEvent({{"iteration", 1}});
    member.SendEvent({{"iteration", 2}});
  });
  EXPECT_EQ(coordinator.NextEvent(Soon())->value.at("iteration"), 1);
  EXPECT_EQ(coordinator.NextEvent(Soon())->value.at("iteration"), 2);
  const auto done = coordinator.NextEvent(Soon());
  EXPECT_EQ(done->rank, 0);
  EXPECT_TRUE(done->value.is_null());
  EXPECT_TRUE(coordinator.finished());
  EXPECT_FALSE(coordinator.NextEvent(Deadline::After(0.01)));
}

// In a net with a thousand outputs, each validation writes a thousand log lines.
TEST(Coordinator, EventsAreKeptUnderThousandsOfLogLines) {
  const auto options = TestOptions(1);
  Coordinator coordinator(options);
  constexpr int kEvents = 20, kLines = 500;
  RunMembers(options, coordinator.port(), [](Member& member) {
    for (int i = 0; i < kEvents; ++i) {
      for (int line = 0; line < kLines; ++line) member.SendLogLine("a line");
      member.SendEvent(i);
    }
  });
  while (!coordinator.finished()) std::this_thread::yield();
  std::vector<int> events;
  int lines = 0;
  while (const auto event = coordinator.NextEvent(Deadline::After(0))) {
    if (event->value.is_number()) events.push_back(event->value.get<int>());
    if (event->value.is_string()) ++lines;
  }
  std::vector<int> all(kEvents);
  std::iota(all.begin(), all.end(), 0);
  EXPECT_EQ(events, all);
  EXPECT_EQ(lines, 4096);
  EXPECT_EQ(coordinator.TakeDroppedLogLines(), kEvents * kLines - lines);
  EXPECT_EQ(coordinator.TakeDroppedLogLines(), 0);
}

TEST(Coordinator, VanishedMemberIsAFailureWithRankAndHost) {
  const auto options = TestOptions(2);
  Coordinator coordinator(options);
  Member stays(OptionsOf(options, coordinator.port(), 0));
  Thread reserving("rank 0", [&] { stays.Reserve({}); });
  {
    Member leaves(OptionsOf(options, coordinator.port(), 1));
    leaves.Reserve({});
    reserving.Join();
  }
  const Error error = Thrown([&] { stays.Barrier("end", Soon()); });
  EXPECT_EQ(error.code(), ErrorCode::kAborted);
  EXPECT_THAT(error.message(), HasSubstr("rank 1 on host host1 went away"));
  EXPECT_TRUE(coordinator.failure()->lost);
}

TEST(Coordinator, MemberThatIsDoneMayLeave) {
  const auto options = TestOptions(2);
  Coordinator coordinator(options);
  RunMembers(options, coordinator.port(), [](Member&) {});
  while (!coordinator.finished()) coordinator.NextEvent(Soon());
  EXPECT_FALSE(coordinator.failure());
}

TEST(Coordinator, KeepsTheFirstFailure) {
  Coordinator coordinator(TestOptions(1));
  coordinator.Fail(-1, "driver", "Spark lost the executor on node3");
  coordinator.Fail(0, "a", "later");
  EXPECT_EQ(coordinator.failure()->Describe(), "Spark lost the executor on node3");
}

// Report of a rank that noticed only that another rank left.
Failure Consequence() {
  return {.code = ErrorCode::kUnavailable, .message = "a peer left", .consequence = true};
}

TEST(Coordinator, ACauseReportedAfterItsConsequenceIsTheFailure) {
  const auto options = TestOptions(2);
  Coordinator coordinator(options);
  Member notices(OptionsOf(options, coordinator.port(), 0));
  Member fails(OptionsOf(options, coordinator.port(), 1));
  notices.SendFailure(Consequence());
  notices.SendEvent("sent");
  ASSERT_TRUE(coordinator.NextEvent(Soon()));
  EXPECT_FALSE(coordinator.failure());
  fails.SendFailure({.message = "layer ip1: bad shape"});
  const Error error = Thrown([&] { notices.Barrier("end", Soon()); });
  EXPECT_EQ(error.message(), "rank 1 on host host1 failed: layer ip1: bad shape");
}

TEST(Coordinator, ALossDetectedAfterItsConsequenceIsTheFailure) {
  const auto options = TestOptions(2);
  Coordinator coordinator(options);
  Member notices(OptionsOf(options, coordinator.port(), 0));
  {
    Member leaves(OptionsOf(options, coordinator.port(), 1));
    notices.SendFailure(Consequence());
    notices.SendEvent("sent");
    ASSERT_TRUE(coordinator.NextEvent(Soon()));
  }
  EXPECT_THAT(Thrown([&] { notices.Barrier("end", Soon()); }).message(),
              HasSubstr("rank 1 on host"));
  EXPECT_TRUE(coordinator.failure()->lost);
}

TEST(Coordinator, TheFirstConsequenceIsTheFailureOnceAllRanksHaveOne) {
  const auto options = TestOptions(3);
  Coordinator coordinator(options);
  Member done(OptionsOf(options, coordinator.port(), 0));
  done.Done(nullptr);
  ASSERT_TRUE(coordinator.NextEvent(Soon()));
  Member first(OptionsOf(options, coordinator.port(), 1));
  Member second(OptionsOf(options, coordinator.port(), 2));
  first.SendEvent("joined");
  second.SendEvent("joined");
  ASSERT_TRUE(coordinator.NextEvent(Soon()) && coordinator.NextEvent(Soon()));
  first.SendFailure(Consequence());
  first.SendEvent("sent");
  ASSERT_TRUE(coordinator.NextEvent(Soon()));
  EXPECT_FALSE(coordinator.failure());
  second.SendFailure(Consequence());
  EXPECT_EQ(Thrown([&] { second.Barrier("end", Soon()); }).message(),
            "rank 1 on host host1 failed: a peer left");
}

TEST(Coordinator, AConsequenceWithoutACauseIsTheFailureAfterTheHeartbeatsTimeout) {
  auto options = TestOptions(2);
  options.heartbeat_interval_s = 0.05;
  options.heartbeat_timeout_s = 1;
  Coordinator coordinator(options);
  Member notices(OptionsOf(options, coordinator.port(), 0));
  Member runs(OptionsOf(options, coordinator.port(), 1));
  runs.SendEvent("joined");
  ASSERT_TRUE(coordinator.NextEvent(Soon()));
  notices.SendFailure(Consequence());
  EXPECT_THAT(Thrown([&] { runs.Barrier("end", Soon()); }).message(),
              HasSubstr("rank 0 on host host0 failed: a peer left"));
}

TEST(Coordinator, AFailureFromTheDriverEndsTheMembersWaits) {
  const auto options = TestOptions(2);
  Coordinator coordinator(options);
  Member member(OptionsOf(options, coordinator.port(), 0));
  coordinator.Fail(1, "node3", "executor lost");
  EXPECT_EQ(Thrown([&] { member.Reserve({}); }).message(),
            "rank 1 on host node3 failed: executor lost");
}

TEST(Coordinator, ALateMemberReceivesAnEarlierFailure) {
  const auto options = TestOptions(2);
  Coordinator coordinator(options);
  coordinator.Fail(0, "node3", "out of memory");
  Member member(OptionsOf(options, coordinator.port(), 1));
  EXPECT_EQ(Thrown([&] { member.Barrier("x", Soon()); }).message(),
            "rank 0 on host node3 failed: out of memory");
}

TEST(Coordinator, AFailureEndsTheWaitForAnEventOnce) {
  Coordinator coordinator(TestOptions(2));
  Thread failing("failing", [&] { coordinator.Fail(1, "node3", "executor lost"); });
  const Deadline soon = Soon();
  EXPECT_FALSE(coordinator.NextEvent(Deadline::After(60)));
  EXPECT_FALSE(soon.expired());
  EXPECT_TRUE(coordinator.failure());
  EXPECT_FALSE(coordinator.NextEvent(Deadline::After(0.05)));  // was reported once; this waits
  failing.Join();
}

TEST(Coordinator, CloseWakesWaiters) {
  Coordinator coordinator(TestOptions(2));
  Thread closer("closer", [&] { coordinator.Close(); });
  EXPECT_FALSE(coordinator.NextEvent(Deadline::After(60)));
  EXPECT_EQ(Thrown([&] { coordinator.WaitForReservations(Soon()); }).code(), ErrorCode::kAborted);
  closer.Join();
  coordinator.Close();
}

TEST(Coordinator, UnknownMessageTypeIsAFailureOfItsRank) {
  const auto options = TestOptions(1);
  Coordinator coordinator(options);
  Connection connection = Connection::Connect("127.0.0.1", coordinator.port(), Soon());
  OfferHandshake(connection, Credentials(options.token, kControlService), {3, 0}, Soon());
  connection.Write(EncodeMessage({{"type", "sing"}}), Soon());
  const Error error = Thrown([&] { coordinator.WaitForReservations(Soon()); });
  EXPECT_THAT(error.message(), HasSubstr("'sing' is unknown"));
  EXPECT_THAT(error.message(), HasSubstr("rank 0 on host 127.0.0.1:"));
}

TEST(Coordinator, InvalidOptionsAreRejected) {
  auto options = TestOptions(0);
  EXPECT_THAT(Thrown([&] { Coordinator coordinator(options); }).message(), HasSubstr("world is 0"));
  options = TestOptions(1);
  options.heartbeat_interval_s = 20;
  EXPECT_EQ(Thrown([&] { Coordinator coordinator(options); }).code(), ErrorCode::kInvalidArgument);
  options = TestOptions(1);
  options.token = "short";
  EXPECT_EQ(Thrown([&] { Coordinator coordinator(options); }).code(), ErrorCode::kInvalidArgument);
}

}  // namespace
}  // namespace hearth::rendezvous
