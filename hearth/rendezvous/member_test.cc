#include "hearth/rendezvous/member.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <future>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "hearth/base/testing/deadline_testing.h"
#include "hearth/rendezvous/handshake.h"
#include "hearth/rendezvous/testing/cluster_testing.h"

namespace hearth::rendezvous {
namespace {

using testing::HasSubstr;
using Clock = std::chrono::steady_clock;

// On an idle machine, a notification takes up to a second. Detecting a missing heartbeat would take
// longer than this timeout.
constexpr auto kNotifyTimeout = std::chrono::seconds(30);

CoordinatorOptions PatientOptions(int world) {
  auto options = TestOptions(world);
  options.heartbeat_timeout_s = 50;
  return options;
}

TEST(Member, AllGatherReturnsTheValuesByRank) {
  const auto options = TestOptions(4);
  Coordinator coordinator(options);
  RunMembers(options, coordinator.port(), [](Member& member) {
    for (int round = 0; round < 20; ++round) {
      const auto values = member.AllGather("x", 10 * round + member.rank(), Soon());
      for (int rank = 0; rank < 4; ++rank) EXPECT_EQ(values.at(rank), 10 * round + rank);
    }
  });
}

TEST(Member, SixtyFourRanksReserve) {
  const auto options = TestOptions(64);
  Coordinator coordinator(options);
  RunMembers(options, coordinator.port(), [](Member& member) {
    const auto values = member.AllGather("address", member.rank(), Soon());
    ASSERT_EQ(values.size(), 64u);
    EXPECT_EQ(values[63], 63);
    member.Barrier("end", Soon());
  });
  EXPECT_FALSE(coordinator.failure());
  EXPECT_EQ(coordinator.refusals().total(), 0);
}

TEST(Member, BarrierBlocksUntilTheLastRankArrives) {
  const auto options = TestOptions(3);
  Coordinator coordinator(options);
  std::atomic<int> arrived = 0;
  RunMembers(options, coordinator.port(), [&](Member& member) {
    ++arrived;
    member.Barrier("b", Soon());
    EXPECT_EQ(arrived, 3);
  });
}

TEST(Member, AWaitThatTimesOutNamesTheMissingRanks) {
  const auto options = TestOptions(2);
  Coordinator coordinator(options);
  RunMembers(options, coordinator.port(), [](Member& member) {
    if (member.rank() == 0) {
      const Error error = Thrown([&] { member.Barrier("weights", Deadline::After(0.05)); });
      EXPECT_EQ(error.code(), ErrorCode::kDeadlineExceeded);
      EXPECT_EQ(error.message(),
                "rank 0 on host host0 timed out waiting for 'weights': rank 1 on host host1 "
                "did not arrive");
    }
    member.Barrier("end", Soon());
  });
}

TEST(Member, ASecondWaitForTheSameNameIsRejected) {
  const auto options = TestOptions(2);
  Coordinator coordinator(options);
  Member member(OptionsOf(options, coordinator.port(), 0));
  const auto wait = [&] {
    const Error error = Thrown([&] { member.Barrier("x", Soon()); });
    // One of the two threads' calls has failed; this ends the wait of the other thread.
    coordinator.Fail(-1, "", "over");
    return error.code();
  };
  auto other = std::async(std::launch::async, wait);
  EXPECT_THAT((std::vector{wait(), other.get()}),
              testing::UnorderedElementsAre(ErrorCode::kInvalidArgument, ErrorCode::kAborted));
}

// Answers each RanksBehind request only when the next one arrives.
class LateAnswers : public ControlServer::Handler {
 public:
  void OnJoin(int, const std::string&) override {}
  void OnFrame(int rank, const Json& frame) override {
    if (frame.at("type") != "absent") return;
    if (!asked_.is_null()) {
      server.load()->Send(rank, {{"type", "absent"}, {"name", asked_}, {"ranks", std::vector{1}}});
    }
    asked_ = frame["name"];
  }
  void OnLost(int, ErrorCode, const std::string&) override {}
  Deadline NextAlarm() override { return Deadline::Never(); }
  void OnAlarm() override {}

  std::atomic<ControlServer*> server = nullptr;

 private:
  Json asked_;
};

TEST(Member, ALateAnswerIsNotMatchedToTheNextRequest) {
  const CoordinatorOptions options = TestOptions(1);
  LateAnswers late;
  ControlServerOptions serving;
  serving.bind_host = "127.0.0.1";
  serving.token = options.token;
  serving.generation = options.generation;
  serving.welcome = {{"type", "welcome"}, {"world", 1}};
  ControlServer server(serving, late);
  late.server = &server;
  Member member(OptionsOf(options, server.port(), 0));
  const GroupStep step = {.group = "g", .rank = 0, .world = 2, .step = 7};
  EXPECT_EQ(member.RanksBehind(step), std::nullopt);
  EXPECT_EQ(member.RanksBehind(step), std::nullopt) << "the answer is the first request's";
}

TEST(Member, TheFirstFailureEndsAllWaitsAtOnce) {
  const auto options = PatientOptions(8);
  Coordinator coordinator(options);
  std::promise<Clock::time_point> failed;
  std::shared_future<Clock::time_point> when = failed.get_future().share();
  std::atomic<int> notified = 0;
  RunMembers(options, coordinator.port(), [&](Member& member) {
    if (member.rank() == 5) {
      failed.set_value(Clock::now());
      member.SendFailure(
          {.code = ErrorCode::kDataLoss, .message = "layer ip1: bad shape", .iteration = 7});
    }
    const Error error = Thrown([&] { member.Barrier("step", Soon()); });
    EXPECT_EQ(error.code(), ErrorCode::kAborted);
    EXPECT_EQ(error.message(), "rank 5 on host host5 failed: layer ip1: bad shape");
    EXPECT_LT(Clock::now() - when.get(), kNotifyTimeout);
    EXPECT_EQ(member.failure()->code, ErrorCode::kDataLoss);
    EXPECT_EQ(member.failure()->iteration, 7);
    ++notified;
  });
  EXPECT_EQ(notified, 8);
}

TEST(Member, AFailureSentJustBeforeLeavingIsNotLost) {
  for (int round = 0; round < 50; ++round) {
    auto options = TestOptions(1);
    options.heartbeat_interval_s =
        0.0005;  // so that the leaving member has unread bytes in its socket
    Coordinator coordinator(options);
    {
      Member member(OptionsOf(options, coordinator.port(), 0));
      member.SendFailure({.message = "the reason"});
    }
    EXPECT_EQ(Thrown([&] { coordinator.WaitForReservations(Soon()); }).message(),
              "rank 0 on host host0 failed: the reason");
  }
}

// Sends large messages in both directions while other members send, too.
TEST(Member, MessagesOfMegabytesArrive) {
  const auto options = TestOptions(2);
  Coordinator coordinator(options);
  const std::string large(5 << 20, 'x');
  RunMembers(options, coordinator.port(), [&](Member& member) {
    const auto values = member.AllGather("large", large, Soon());
    EXPECT_EQ(values, (std::vector<Json>{large, large}));
    member.SendEvent(large);
  });
  int whole = 0;
  while (whole < 2) {
    const auto event = coordinator.NextEvent(Soon());
    ASSERT_TRUE(event);
    whole += event->value == large;
  }
  EXPECT_FALSE(coordinator.failure());
}

// A fake coordinator with a small receive window reads only while the member is closing or has
// closed.
TEST(Member, LastMessagesArriveHoweverLateTheyAreRead) {
  TcpListener listener("127.0.0.1");
  const int small = 4096;
  ASSERT_EQ(::setsockopt(listener.fd(), SOL_SOCKET, SO_RCVBUF, &small, sizeof(small)), 0);
  const auto options = TestOptions(1);
  const std::string large(200000, 'x');  // more than the window, less than the send buffer
  std::promise<void> said;
  Thread rank("rank", [&] {
    Member member(OptionsOf(options, listener.port(), 0));
    member.SendEvent(large);
    member.Done(large);
    said.set_value();
  });
  Connection connection = listener.Accept(Soon());
  AcceptHandshake(connection, Credentials(options.token, kControlService), {3, 0}, Soon());
  connection.Write(EncodeMessage({{"type", "welcome"}, {"world", 1}}), Soon());
  said.get_future().wait();
  for (int i = 0; i < 5; ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    connection.Write(EncodeMessage({{"type", "heartbeat"}}), Soon());
  }
  FrameReader frames;
  char bytes[4096];
  while (const size_t got = connection.ReadSome(bytes, sizeof(bytes), Soon())) {
    frames.Append({bytes, got});
  }
  std::vector<std::string> whole;
  while (const auto message = frames.Next()) {
    if (message->value("value", Json()) == large) whole.push_back(message->at("type"));
  }
  EXPECT_THAT(whole, testing::ElementsAre("event", "done"));
}

TEST(Member, IsDoneEvenIfItsResultIsTooLarge) {
  const auto options = TestOptions(1);
  Coordinator coordinator(options);
  Member member(OptionsOf(options, coordinator.port(), 0));
  member.Done(std::string(kMaxMessageBytes, 'x'));
  EXPECT_EQ(coordinator.NextEvent(Soon())->value, nullptr);
  EXPECT_TRUE(coordinator.finished());
}

TEST(Member, ARequestThatIsTooLargeMayBeRepeated) {
  const auto options = TestOptions(1);
  Coordinator coordinator(options);
  Member member(OptionsOf(options, coordinator.port(), 0));
  const Json large = std::string(kMaxMessageBytes, 'x');
  const std::string first = Thrown([&] { member.AllGather("rows", large, Soon()); }).message();
  EXPECT_EQ(Thrown([&] { member.AllGather("rows", large, Soon()); }).message(), first);
  EXPECT_EQ(member.AllGather("rows", 5, Soon()), std::vector<Json>{5});
}

TEST(Member, AFailureOfMegabytesIsShortened) {
  const auto options = TestOptions(1);
  Coordinator coordinator(options);
  Member member(OptionsOf(options, coordinator.port(), 0));
  const std::string text = "the reason " + std::string(3 << 20, '\x01') + " the end";
  member.SendFailure({.message = text});
  const std::string message = Thrown([&] { member.Barrier("step", Soon()); }).message();
  EXPECT_THAT(message,
              testing::AllOf(testing::HasSubstr("failed: the reason"),
                             testing::HasSubstr("bytes omitted"), testing::EndsWith(" the end")));
  EXPECT_LT(message.size(), 2 * kMaxFailureText);
}

TEST(Member, FailureCallbackIsCalledOnce) {
  const auto options = TestOptions(1);
  Coordinator coordinator(options);
  Member member(OptionsOf(options, coordinator.port(), 0));
  std::promise<std::string> message;
  const auto subscription =
      member.OnFailure([&](const Failure& failure) { message.set_value(failure.Describe()); });
  coordinator.Fail(-1, "driver", "stopped by the user");
  EXPECT_EQ(message.get_future().get(), "stopped by the user");
}

TEST(Member, BroadcastCallsTheMessageCallback) {
  const auto options = TestOptions(2);
  Coordinator coordinator(options);
  std::vector<std::promise<Json>> got(2);
  std::vector<std::unique_ptr<Member>> members;
  for (int rank = 0; rank < 2; ++rank) {
    auto member = OptionsOf(options, coordinator.port(), rank);
    member.on_message = [&got, rank](const Json& value) { got[rank].set_value(value); };
    members.push_back(std::make_unique<Member>(member));
  }
  coordinator.Broadcast({{"request", "stop"}});
  for (auto& value : got) EXPECT_EQ(value.get_future().get(), (Json{{"request", "stop"}}));
}

TEST(Member, ALostCoordinatorIsAFailure) {
  const auto options = TestOptions(2);
  auto coordinator = std::make_unique<Coordinator>(options);
  Member member(OptionsOf(options, coordinator->port(), 0));
  coordinator.reset();
  const Error error = Thrown([&] { member.Barrier("x", Soon()); });
  EXPECT_EQ(error.code(), ErrorCode::kAborted);
  EXPECT_THAT(error.message(), HasSubstr("the coordinator at 127.0.0.1:"));
}

TEST(Member, ASilentCoordinatorIsAFailure) {
  TcpListener listener("127.0.0.1");
  const auto options = TestOptions(1);
  std::promise<void> over;
  Thread silent("silent coordinator", [&] {
    Connection connection = listener.Accept(Soon());
    AcceptHandshake(connection, Credentials(options.token, kControlService), {3, 0},
                    Deadline::After(10));
    connection.Write(EncodeMessage({{"type", "welcome"},
                                    {"world", 1},
                                    {"heartbeat_interval_s", 0.02},
                                    {"heartbeat_timeout_s", 0.1}}),
                     Soon());
    over.get_future().wait();
  });
  Member member(OptionsOf(options, listener.port(), 0));
  const Error error = Thrown([&] { member.Barrier("x", Soon()); });
  EXPECT_THAT(error.message(), HasSubstr("has been silent for 0.1 s"));
  over.set_value();
}

// A separate process is stopped as a whole, so that its thread no longer sends heartbeats.
TEST(Member, AFrozenProcessIsDetectedByMissingHeartbeats) {
  auto options = TestOptions(2);
  options.heartbeat_interval_s = 0.05;
  options.heartbeat_timeout_s = 0.5;
  auto [here, there] = Connection::Pair();
  const pid_t child = ::fork();
  if (child == 0) {
    int port = 0;
    there.Read(&port, sizeof(port), Soon());
    Member member(OptionsOf(options, port, 1));
    member.Reserve({});
    ::pause();
  }
  Coordinator coordinator(options);
  const int port = coordinator.port();
  here.Write(&port, sizeof(port), Soon());
  Member member(OptionsOf(options, coordinator.port(), 0));
  member.Reserve({});
  ::kill(child, SIGSTOP);
  const Error error = Thrown([&] { member.Barrier("step", Soon()); });
  EXPECT_THAT(error.message(), HasSubstr("rank 1 on host host1 has been silent for 0.5 s"));
  ::kill(child, SIGKILL);
  ::waitpid(child, nullptr, 0);
}

TEST(Member, AKilledProcessIsDetectedAtOnce) {
  const auto options = PatientOptions(2);
  auto [here, there] = Connection::Pair();
  const pid_t child = ::fork();
  if (child == 0) {
    int port = 0;
    there.Read(&port, sizeof(port), Soon());
    Member member(OptionsOf(options, port, 1));
    member.Reserve({});
    ::pause();
  }
  Coordinator coordinator(options);
  const int port = coordinator.port();
  here.Write(&port, sizeof(port), Soon());
  Member member(OptionsOf(options, coordinator.port(), 0));
  member.Reserve({});
  ::kill(child, SIGKILL);
  const auto begin = Clock::now();
  EXPECT_THAT(Thrown([&] { member.Barrier("step", Soon()); }).message(),
              HasSubstr("rank 1 on host host1 went away"));
  EXPECT_LT(Clock::now() - begin, kNotifyTimeout);
  ::waitpid(child, nullptr, 0);
}

TEST(Member, ARejectionNamesTheRankAndTheServer) {
  const auto options = TestOptions(2);
  Coordinator coordinator(options);
  auto stale = OptionsOf(options, coordinator.port(), 1);
  stale.generation = 2;
  const Error error = Thrown([&] { Member member(stale); });
  EXPECT_EQ(error.code(), ErrorCode::kPermissionDenied);
  EXPECT_THAT(error.message(), HasSubstr("rank 1 on host host1 cannot join the cluster at"));
  EXPECT_THAT(error.message(), HasSubstr("it serves generation 3"));
}

TEST(Member, AnotherWorldIsRejected) {
  const auto options = TestOptions(2);
  Coordinator coordinator(options);
  auto member = OptionsOf(options, coordinator.port(), 1);
  member.world = 4;
  EXPECT_EQ(Thrown([&] { Member refused(member); }).code(), ErrorCode::kInvalidArgument);
}

}  // namespace
}  // namespace hearth::rendezvous
