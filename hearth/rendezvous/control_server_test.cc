#include "hearth/rendezvous/control_server.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <condition_variable>
#include <string>
#include <vector>

#include "hearth/base/hmac.h"
#include "hearth/base/testing/accept_testing.h"
#include "hearth/base/testing/deadline_testing.h"
#include "hearth/rendezvous/testing/cluster_testing.h"
#include "hearth/rendezvous/testing/reset_testing.h"
#include "hearth/rendezvous/testing/slow_clients_testing.h"

namespace hearth::rendezvous {
namespace {

using testing::HasSubstr;

// Records the server's callbacks and lets a test wait for them.
class Record : public ControlServer::Handler {
 public:
  void OnJoin(int rank, const std::string& peer) override { Add("join"); }
  void OnFrame(int rank, const Json& frame) override {
    Add("frame " + frame.at("type").get<std::string>());
  }
  void OnLost(int rank, ErrorCode code, const std::string& reason) override {
    Add(fmt::format("lost ({}): {}", ErrorCodeName(code), reason));
  }
  Deadline NextAlarm() override { return Deadline::Never(); }
  void OnAlarm() override {}

  // The first entry that starts with `prefix`; empty if none arrives in time.
  std::string Await(const std::string& prefix) {
    std::unique_lock lock(mutex_);
    std::string found;
    changed_.wait_until(lock, Soon().at(), [&] {
      for (const std::string& entry : entries_) {
        if (entry.starts_with(prefix)) found = entry;
      }
      return !found.empty();
    });
    return found;
  }

  size_t size() {
    const std::lock_guard lock(mutex_);
    return entries_.size();
  }

 private:
  void Add(std::string entry) {
    const std::lock_guard lock(mutex_);
    entries_.push_back(std::move(entry));
    changed_.notify_all();
  }
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<std::string> entries_;
};

class ControlServerTest : public testing::Test {
 protected:
  void Start(double handshake_timeout_s = 5, double heartbeat_timeout_s = 10) {
    ControlServerOptions options;
    options.bind_host = "127.0.0.1";
    options.token = token_;
    options.generation = 3;
    options.world = 2;
    options.handshake_timeout_s = handshake_timeout_s;
    options.heartbeat_interval_s = 0.02;
    options.heartbeat_timeout_s = heartbeat_timeout_s;
    options.welcome = {{"type", "welcome"}};
    server_ = std::make_unique<ControlServer>(options, record_);
  }

  Connection Connect() { return Connection::Connect("127.0.0.1", server_->port(), Soon()); }

  Connection Join(uint32_t rank, uint32_t generation = 3) {
    Connection connection = Connect();
    OfferHandshake(connection, Credentials(token_, kControlService), {generation, rank}, Soon());
    return connection;
  }

  // Reads until the server closes the connection, as it does if it rejects the client.
  static void AwaitEnd(Connection& connection) {
    char bytes[256];
    while (connection.ReadSome(bytes, sizeof(bytes), Soon()) > 0) {
    }
  }

  const std::string token_ = NewToken();
  Record record_;
  std::unique_ptr<ControlServer> server_;
};

TEST_F(ControlServerTest, MemberWithTheTokenJoins) {
  Start();
  Connection member = Join(0);
  EXPECT_EQ(record_.Await("join"), "join");
  member.Write(EncodeMessage({{"type", "anything"}}), Soon());
  EXPECT_EQ(record_.Await("frame"), "frame anything");
  EXPECT_EQ(server_->refusals().total(), 0);
}

TEST_F(ControlServerTest, WrongTokenIsRejectedAndCounted) {
  Start();
  Connection connection = Connect();
  const Credentials wrong(NewToken(), kControlService);
  EXPECT_EQ(Thrown([&] {
              OfferHandshake(connection, wrong, {3, 0}, Soon());
            }).code(),
            ErrorCode::kPermissionDenied);
  EXPECT_EQ(server_->refusals().proof, 1);
  Join(0);
}

TEST_F(ControlServerTest, ReplayedHandshakeIsRejectedAndCounted) {
  Start();
  Connection first = Connect();
  std::string hello(kHelloBytes, '\0');
  first.Read(hello.data(), hello.size(), Soon());
  const std::string claim =
      MakeClaim(Credentials(token_, kControlService), hello, RandomBytes(32), {3, 0});
  first.Write(claim, Soon());
  EXPECT_EQ(record_.Await("join"), "join");
  Connection second = Connect();
  second.Write(claim, Soon());
  AwaitEnd(second);
  EXPECT_EQ(server_->refusals().proof, 1);
}

TEST_F(ControlServerTest, OlderGenerationIsRejectedAndCounted) {
  Start();
  EXPECT_THAT(Thrown([&] { Join(0, 2); }).message(), HasSubstr("it serves generation 3"));
  EXPECT_EQ(server_->refusals().generation, 1);
}

TEST_F(ControlServerTest, UnknownAndDuplicateRanksAreRejectedAndCounted) {
  Start();
  EXPECT_THAT(Thrown([&] { Join(2); }).message(), HasSubstr("there is no such rank"));
  const Connection member = Join(1);
  EXPECT_THAT(Thrown([&] { Join(1); }).message(), HasSubstr("has already joined"));
  EXPECT_EQ(server_->refusals().rank, 2);
}

TEST_F(ControlServerTest, GarbageBeforeTheHandshakeIsRejectedAndCounted) {
  Start();
  Connection connection = Connect();
  connection.Write(
      "GET / HTTP/1.1\r\nHost: a.very.long.name.of.a.host.example\r\n"
      "Accept: everything, in any language\r\n\r\n",
      Soon());
  AwaitEnd(connection);
  EXPECT_EQ(server_->refusals().malformed, 1);
}

TEST_F(ControlServerTest, FramesBeforeTheVerdictAreNotParsed) {
  Start();
  Connection connection = Connect();
  std::string hello(kHelloBytes, '\0');
  connection.Read(hello.data(), hello.size(), Soon());
  const std::string claim =
      MakeClaim(Credentials(NewToken(), kControlService), hello, RandomBytes(32), {3, 0});
  connection.Write(claim + EncodeMessage({{"type", "early"}}), Soon());
  AwaitEnd(connection);
  EXPECT_EQ(server_->refusals().total(), 1);
  server_->Stop();
  EXPECT_EQ(record_.size(), 0u);
}

TEST_F(ControlServerTest, SlowHandshakeEndsAtItsDeadline) {
  Start(0.1);
  Connection connection = Connect();
  connection.Write("HEARTH1\n", Soon());  // the start of a claim; the rest never follows
  const auto begin = std::chrono::steady_clock::now();
  AwaitEnd(connection);
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(30));
  EXPECT_EQ(server_->refusals().slow, 1);
}

TEST_F(ControlServerTest, ManySlowClientsDoNotLockMembersOut) {
  Start(60);
  SlowClients clients([&] { return Connect(); }, 300);
  for (const uint32_t rank : {0, 1}) {
    const auto begin = std::chrono::steady_clock::now();
    const Connection member = Join(rank);
    EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(30));
  }
  clients.Leave();
  EXPECT_GE(server_->refusals().slow, 300 - 64 - 2);
}

TEST_F(ControlServerTest, ResetConnectionsAreCounted) {
  Start();
  int clients = 0;
  for (const auto stage :
       {ResetStage::kBeforeHello, ResetStage::kInTheProof, ResetStage::kAfterTheProof}) {
    for (int i = 0; i < 20; ++i, ++clients) ResetAt(stage, Connect());
  }
  // The server accepts this member only after all other clients.
  const Connection member = Join(0);
  EXPECT_EQ(server_->refusals().total(), clients);
  EXPECT_EQ(server_->refusals().proof, 20);
}

TEST_F(ControlServerTest, TheListenerSurvivesAcceptFailures) {
  Start();
  const FailingAccept failing({EMFILE, ECONNABORTED, ENOBUFS, EBADF, EPROTO});
  const Connection member = Join(0);
  EXPECT_EQ(record_.Await("join"), "join");
  EXPECT_EQ(FailingAccept::left(), 0u);
}

TEST_F(ControlServerTest, AnOversizedFrameDropsTheMember) {
  Start();
  Connection member = Join(0);
  member.Write(EncodeU32(kMaxFrameBytes + 1), Soon());
  EXPECT_THAT(record_.Await("lost"), HasSubstr("length of 1048577 bytes"));
}

TEST_F(ControlServerTest, AFrameWithoutARequiredFieldDropsTheMember) {
  Start();
  Connection member = Join(0);
  member.Write(EncodeMessage({{"no type", 1}}), Soon());
  EXPECT_THAT(record_.Await("lost"), HasSubstr("broke the control protocol"));
}

TEST_F(ControlServerTest, MemberThatClosesIsLostAtOnce) {
  Start();
  { const Connection member = Join(0); }
  EXPECT_THAT(record_.Await("lost"), HasSubstr("(unavailable): went away"));
}

TEST_F(ControlServerTest, SilentMemberIsLostAfterTheHeartbeatTimeout) {
  Start(5, 0.2);
  const Connection member = Join(0);
  EXPECT_THAT(record_.Await("lost"), HasSubstr("(deadline_exceeded): has been silent for 0.2 s"));
}

TEST_F(ControlServerTest, MemberThatDoesNotReadIsLostAndBlocksNoOther) {
  Start(5, 60);  // timeouts long enough that no heartbeat is needed during the encoding
  const Connection stuck = Join(0);
  Connection other = Join(1);
  const Json large = {{"type", "large"}, {"value", std::string(kMaxFrameBytes - 100, 'x')}};
  for (int i = 0; i < 20; ++i) server_->Send(0, large);
  EXPECT_THAT(record_.Await("lost"), HasSubstr("does not read"));
  other.Write(EncodeMessage({{"type", "alive"}}), Soon());
  EXPECT_EQ(record_.Await("frame"), "frame alive");
}

TEST_F(ControlServerTest, StopDeliversPendingMessages) {
  Start();
  Connection member = Join(0);
  EXPECT_EQ(record_.Await("join"), "join");
  server_->Send(0, {{"type", "last words"}});
  server_->Stop();
  std::string received;
  char bytes[4096];
  while (const size_t got = member.ReadSome(bytes, sizeof(bytes), Soon())) {
    received.append(bytes, got);
  }
  EXPECT_THAT(received, HasSubstr("last words"));
}

}  // namespace
}  // namespace hearth::rendezvous
