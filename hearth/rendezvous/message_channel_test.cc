#include "hearth/rendezvous/message_channel.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <memory>
#include <string>
#include <utility>

#include "hearth/base/hmac.h"
#include "hearth/base/testing/deadline_testing.h"
#include "hearth/rendezvous/handshake.h"
#include "hearth/rendezvous/testing/cluster_testing.h"

namespace hearth::rendezvous {
namespace {

using testing::HasSubstr;

// Two connected channels.
class MessageChannelTest : public testing::Test {
 protected:
  explicit MessageChannelTest(std::pair<Connection, Connection> pair = Connection::Pair())
      : local_(std::move(pair.first)), remote_(std::move(pair.second)) {}

  // Writes raw bytes, as a program that is not Hearth could.
  void Write(std::string_view bytes) { local_.connection()->Write(bytes, Soon()); }

  MessageChannel local_, remote_;
};

TEST_F(MessageChannelTest, SendsMessagesInOrder) {
  local_.Send({{"op", "a"}});
  local_.Send({{"op", "b"}, {"n", 0xfedcba9876543210u}});
  EXPECT_EQ(remote_.Receive(Soon())->message, Json({{"op", "a"}}));
  EXPECT_EQ(remote_.Receive(Soon())->message, Json({{"op", "b"}, {"n", 0xfedcba9876543210u}}));
}

TEST_F(MessageChannelTest, SendsDescriptorsAndDataWithALongMessage) {
  auto [left, right] = Connection::Pair();
  const std::string rows(5 << 20, 'r');
  const Json message = {{"text", std::string(3 * kMaxFrameBytes, 'x')}};
  Thread sender("sender", [&, &right = right] {
    local_.Send(message, std::array{right.fd()}, rows);
    local_.Send({{"op", "next"}});
  });
  auto received = remote_.Receive(Soon());
  EXPECT_EQ(received->message, message);
  ASSERT_EQ(received->descriptors.size(), 1u);
  std::string got(rows.size(), '\0');
  remote_.ReceiveData(got.data(), got.size());
  EXPECT_EQ(got, rows);
  received = remote_.Receive(Soon());
  EXPECT_EQ(received->message, Json({{"op", "next"}}));
  EXPECT_TRUE(received->descriptors.empty());
  sender.Join();
}

TEST_F(MessageChannelTest, MessagesOfSeveralThreadsDoNotMix) {
  constexpr int kEach = 50;
  const std::string rows(300'000, 'r');
  std::vector<Thread> senders;
  for (int thread = 0; thread < 2; ++thread) {
    senders.emplace_back("sender", [&] {
      for (int i = 0; i < kEach; ++i) local_.Send({{"bytes", rows.size()}}, {}, rows);
    });
  }
  // Unblocks the senders before they are joined, even if the test fails.
  const std::shared_ptr<void> end(nullptr, [&](void*) { remote_.End(); });
  std::string got(rows.size(), '\0');
  for (int i = 0; i < 2 * kEach; ++i) {
    ASSERT_EQ(remote_.Receive(Soon())->message, Json({{"bytes", rows.size()}}));
    remote_.ReceiveData(got.data(), got.size());
    ASSERT_EQ(got, rows);
  }
  for (Thread& sender : senders) sender.Join();
}

TEST_F(MessageChannelTest, AnEndBetweenMessagesIsNotAnError) {
  local_.Send({{"op", "last"}});
  local_.Close();
  EXPECT_TRUE(remote_.Receive(Soon()));
  EXPECT_FALSE(remote_.Receive(Soon()));
}

TEST_F(MessageChannelTest, AnEndWithinAMessageIsUnavailable) {
  for (const std::string& cut : {std::string("\0\0", 2), EncodeU32(5) + "{\"a"}) {
    auto [local, remote] = Connection::Pair();
    MessageChannel channel(std::move(remote));
    local.Write(cut, Soon());
    local.Shutdown();
    EXPECT_EQ(Thrown([&] { channel.Receive(Soon()); }).code(), ErrorCode::kUnavailable);
  }
}

TEST_F(MessageChannelTest, AReceiveMayContinueAfterATimeout) {
  EXPECT_EQ(Thrown([&] { remote_.Receive(Deadline::After(0.02)); }).code(),
            ErrorCode::kDeadlineExceeded);
  local_.Send({{"op", "late"}});
  EXPECT_EQ(remote_.Receive(Soon())->message, Json({{"op", "late"}}));
}

TEST_F(MessageChannelTest, TheDeadlineIsForTheWholeMessage) {
  Write(EncodeU32(100) + "{");
  EXPECT_EQ(Thrown([&] { remote_.Receive(Deadline::After(0.02)); }).code(),
            ErrorCode::kDeadlineExceeded);
}

TEST_F(MessageChannelTest, InvalidMessagesAreDataLoss) {
  for (const std::string& bytes : {EncodeU32(kMaxFrameBytes + 1), EncodeU32(3) + "abc",
                                   EncodeU32(2) + "[]", EncodeU32(1u << 31 | 5)}) {
    auto [local, remote] = Connection::Pair();
    MessageChannel channel(std::move(remote));
    local.Write(bytes, Soon());
    EXPECT_EQ(Thrown([&] { channel.Receive(Soon()); }).code(), ErrorCode::kDataLoss);
  }
}

TEST_F(MessageChannelTest, EndEndsTheWaitsOfOtherThreads) {
  Thread reader("reader", [&] { EXPECT_FALSE(remote_.Receive(Soon())); });
  Thread writer("writer", [&] {
    const Error error = Thrown([&] { remote_.Send({{"a", 1}}, {}, std::string(64 << 20, 'x')); });
    EXPECT_EQ(error.code(), ErrorCode::kUnavailable);
  });
  remote_.End();
  reader.Join();
  writer.Join();
}

TEST_F(MessageChannelTest, AClosedChannelHasNoDescriptor) {
  const int fd = local_.connection()->fd();
  local_.Close();
  local_.Close();
  EXPECT_EQ(::fcntl(fd, F_GETFD), -1);
  for (const auto& use : std::initializer_list<std::function<void()>>{
           [&] {
             local_.Send({{"a", 1}});
           },
           [&] { local_.Receive(Soon()); }, [&] { local_.Release(); }}) {
    const Error error = Thrown(use);
    EXPECT_EQ(error.code(), ErrorCode::kUnavailable);
    EXPECT_THAT(error.message(), HasSubstr("closed"));
  }
}

TEST_F(MessageChannelTest, ReleasesItsSocketBetweenMessages) {
  local_.Send({{"op", "first"}});
  local_.Send({{"op", "second"}});
  EXPECT_TRUE(remote_.Receive(Soon()));
  MessageChannel successor(Connection(remote_.Release(), "successor"));
  EXPECT_EQ(successor.Receive(Soon())->message, Json({{"op", "second"}}));
}

TEST_F(MessageChannelTest, StartsAfterAHandshake) {
  const Credentials credentials(NewToken(), "feed");
  const Identity node = {.generation = 0, .rank = 2};
  Thread server("server", [&] {
    AcceptHandshake(*remote_.connection(), credentials, node, Soon());
    remote_.Send({{"op", "welcome"}});
  });
  OfferHandshake(*local_.connection(), credentials, node, Soon());
  EXPECT_EQ(local_.Receive(Soon())->message, Json({{"op", "welcome"}}));
  server.Join();
}

}  // namespace
}  // namespace hearth::rendezvous
