#include "hearth/collective/transport/tcp_transport.h"

#include <gmock/gmock.h>

#include <functional>
#include <limits>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "hearth/base/testing/deadline_testing.h"
#include "hearth/base/testing/error_testing.h"
#include "hearth/base/thread.h"

namespace hearth::collective {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

// Two transports over a socket pair; the peers are "rank 0 on host a" and "rank 1 on host b".
class TcpTransportTest : public ::testing::Test {
 protected:
  TcpTransportTest() {
    auto [left, right] = Connection::Pair();
    for (int self = 0; self < 2; ++self) {
      std::vector<std::unique_ptr<PeerStream>> streams(2);
      Connection& own = self == 0 ? left : right;
      streams[static_cast<size_t>(1 - self)] =
          MakePlainStream(std::move(own), peers_[static_cast<size_t>(1 - self)]);
      ranks_.push_back(std::make_unique<TcpTransport>(std::move(streams), peers_, self, abort_));
    }
  }

  // The plan of a rank that sends its bytes to the other rank and receives the other rank's bytes.
  static Plan Exchange(int self, const std::string& sent, std::string* received) {
    Plan plan;
    plan.sends.push_back({1 - self, reinterpret_cast<const std::byte*>(sent.data()), sent.size()});
    plan.receives.push_back(
        {1 - self, reinterpret_cast<std::byte*>(received->data()), received->size()});
    return plan;
  }
  static Call CallOf(uint64_t bytes) {
    return {.operation = Operation::kAllToAll, .type = DataType::kUint8, .bytes = bytes};
  }

  const std::vector<Peer> peers_ = {{0, "a"}, {1, "b"}};
  const std::shared_ptr<AbortSignal> abort_ = std::make_shared<AbortSignal>();
  std::vector<std::unique_ptr<TcpTransport>> ranks_;
};

// More than fits in the socket's buffers, so both ranks must receive while they send.
TEST_F(TcpTransportTest, BothRanksSendLargeMessagesAtOnce) {
  const std::string mine(8 << 20, 'a'), others(8 << 20, 'b');
  std::vector<std::string> received(2, std::string(8 << 20, '-'));
  std::vector<Thread> threads;
  for (int self = 0; self < 2; ++self) {
    threads.emplace_back("rank", [&, self] {
      TcpTransport& own = *ranks_[static_cast<size_t>(self)];
      own.Begin(CallOf(mine.size()));
      own.Run(Exchange(self, self == 0 ? mine : others, &received[static_cast<size_t>(self)]),
              Soon());
    });
  }
  for (Thread& thread : threads) thread.Join();
  EXPECT_TRUE(received[0] == others);
  EXPECT_TRUE(received[1] == mine);
}

// One thread is enough, because the small message is in the socket's buffer before the other rank
// runs.
TEST_F(TcpTransportTest, APeerInAnotherCallIsNamedWithItsCall) {
  const std::string sent = "abcd";
  Plan send;
  send.sends.push_back({1, reinterpret_cast<const std::byte*>(sent.data()), sent.size()});
  ranks_[0]->BeginPair({.operation = Operation::kSend, .type = DataType::kUint8, .bytes = 4}, 1);
  ranks_[0]->Run(send, Soon());
  std::string received(8, '-');
  Plan receive;
  receive.receives.push_back({0, reinterpret_cast<std::byte*>(received.data()), 8});
  ranks_[1]->BeginPair({.operation = Operation::kReceive, .type = DataType::kUint8, .bytes = 8}, 0);
  const Error error = Thrown([&] { ranks_[1]->Run(receive, Soon()); });
  EXPECT_EQ(error.code(), ErrorCode::kInvalidArgument);
  EXPECT_THAT(error.message(), AllOf(HasSubstr("rank 0 on host a"), HasSubstr("of 4 bytes")));
}

TEST_F(TcpTransportTest, APeerThatHasLeftIsNamed) {
  ranks_[0]->Close();
  std::string sent = "abcd", received(4, '-');
  ranks_[1]->Begin(CallOf(4));
  const Error error = Thrown([&] { ranks_[1]->Run(Exchange(1, sent, &received), Soon()); });
  EXPECT_EQ(error.code(), ErrorCode::kUnavailable);
  EXPECT_THAT(error.message(), HasSubstr("rank 0 on host a"));
  EXPECT_THAT(ranks_[1]->DepartedRank(), HasSubstr("rank 0 on host a"));
}

TEST_F(TcpTransportTest, TheDeadlineNamesThePeerThatHasNotStarted) {
  std::string sent = "abcd", received(4, '-');
  ranks_[1]->Begin(CallOf(4));
  const Error error =
      Thrown([&] { ranks_[1]->Run(Exchange(1, sent, &received), Deadline::After(0)); });
  EXPECT_EQ(error.code(), ErrorCode::kDeadlineExceeded);
  EXPECT_EQ(error.message(), "rank 0 on host a had sent nothing before the deadline");
}

TEST_F(TcpTransportTest, AnAbortEndsAWait) {
  std::string sent = "abcd", received(4, '-');
  ranks_[1]->Begin(CallOf(4));
  Thread aborts("abort", [&] { abort_->Raise("rank 7 failed"); });
  const Error error = Thrown([&] { ranks_[1]->Run(Exchange(1, sent, &received), Soon()); });
  aborts.Join();
  EXPECT_EQ(error.code(), ErrorCode::kAborted);
  EXPECT_THAT(error.message(), HasSubstr("rank 7 failed"));
}

// Calls `on_poll` before each attempt to receive, with the number of attempts.
class CountedStream : public PeerStream {
 public:
  CountedStream(std::unique_ptr<PeerStream> stream, std::function<void(int)> on_poll)
      : stream_(std::move(stream)), on_poll_(std::move(on_poll)) {}
  size_t Send(std::span<const iovec> parts) override { return stream_->Send(parts); }
  size_t Receive(std::span<const iovec> parts) override {
    on_poll_(++polls_);
    return stream_->Receive(parts);
  }
  int fd() const override { return stream_->fd(); }
  void Shutdown() noexcept override { stream_->Shutdown(); }

 private:
  const std::unique_ptr<PeerStream> stream_;
  const std::function<void(int)> on_poll_;
  int polls_ = 0;
};

// Rank 0 of two on a host with more ranks than cores. It yields while it waits for rank 1, which
// sends nothing.
class YieldingTcpRank : public ::testing::Test {
 protected:
  // Fails if the rank never sleeps.
  Error AwaitRank1(Deadline deadline, const std::function<void(int)>& on_poll) {
    auto [own, other] = Connection::Pair();
    other_ = MakePlainStream(std::move(other), peers_[0]);
    std::vector<std::unique_ptr<PeerStream>> streams(2);
    streams[1] =
        std::make_unique<CountedStream>(MakePlainStream(std::move(own), peers_[1]), [&](int polls) {
          on_poll(polls);
          Require(polls < 10000, ErrorCode::kInternal, "{} polls without a sleep", polls);
        });
    TcpTransport rank(std::move(streams), peers_, 0, abort_, std::numeric_limits<int>::max());
    char byte = 0;
    Plan plan;
    plan.receives.push_back({1, reinterpret_cast<std::byte*>(&byte), 1});
    rank.Begin({.operation = Operation::kAllToAll, .type = DataType::kUint8, .bytes = 1});
    return Thrown([&] { rank.Run(plan, deadline); });
  }

  const std::vector<Peer> peers_ = {{0, "a"}, {1, "b"}};
  const std::shared_ptr<AbortSignal> abort_ = std::make_shared<AbortSignal>();
  std::unique_ptr<PeerStream> other_;
};

TEST_F(YieldingTcpRank, IsAborted) {
  const Error error = AwaitRank1(Deadline::Never(), [&](int polls) {
    if (polls == 3) abort_->Raise("rank 2 failed");
  });
  EXPECT_EQ(error.code(), ErrorCode::kAborted) << error.message();
}

TEST_F(YieldingTcpRank, MeetsItsDeadline) {
  const Error error = AwaitRank1(Deadline::After(0.01), [](int) {});
  EXPECT_EQ(error.message(), "rank 1 on host b had sent nothing before the deadline");
}

TEST_F(YieldingTcpRank, NamesThePeerThatLeaves) {
  const Error error = AwaitRank1(Soon(), [&](int polls) {
    if (polls == 3) other_->Shutdown();
  });
  EXPECT_EQ(error.code(), ErrorCode::kUnavailable);
  EXPECT_THAT(error.message(), HasSubstr("rank 1 on host b"));
}

}  // namespace
}  // namespace hearth::collective
