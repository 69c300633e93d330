#include "hearth/rendezvous/message_channel.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <memory>
#include <string>
#include <utility>

#include "hearth/base/deadline_testing.h"
#include "hearth/base/hmac.h"
#include "hearth/rendezvous/cluster_testing.h"
#include "hearth/rendezvous/handshake.h"

namespace hearth::rendezvous {
namespace {

using testing::HasSubstr;

// Two channels connected to each other.
class MessageChannelTest : public testing::Test {
 protected:
  explicit MessageChannelTest(std::pair<Connection, Connection> pair = Connection::Pair())
      : near_(std::move(pair.first)), far_(std::move(pair.second)) {}

  // Bytes as another program may send them.
  void Write(std::string_view bytes) { near_.connection()->Write(bytes, Soon()); }

  MessageChannel near_, far_;
};

TEST_F(MessageChannelTest, CarriesMessagesInOrder) {
  near_.Send({{"op", "a"}});
  near_.Send({{"op", "b"}, {"n", 0xfedcba9876543210u}});
  EXPECT_EQ(far_.Receive(Soon())->message, Json({{"op", "a"}}));
  EXPECT_EQ(far_.Receive(Soon())->message, Json({{"op", "b"}, {"n", 0xfedcba9876543210u}}));
}

TEST_F(MessageChannelTest, CarriesDescriptorsAndRowsBehindALongMessage) {
  auto [left, right] = Connection::Pair();
  const std::string rows(5 << 20, 'r');
  const Json message = {{"text", std::string(3 * kMaxFrameBytes, 'x')}};
  Thread sender("sender", [&, &right = right] {
    near_.Send(message, std::array{right.fd()}, rows);
    near_.Send({{"op", "next"}});
  });
  auto received = far_.Receive(Soon());
  EXPECT_EQ(received->message, message);
  ASSERT_EQ(received->descriptors.size(), 1u);
  std::string got(rows.size(), '\0');
  far_.ReceiveData(got.data(), got.size());
  EXPECT_EQ(got, rows);
  received = far_.Receive(Soon());
  EXPECT_EQ(received->message, Json({{"op", "next"}}));
  EXPECT_TRUE(received->descriptors.empty());
  sender.Join();
}

TEST_F(MessageChannelTest, ThreadsThatSendDoNotMixTheirBytes) {
  constexpr int kEach = 50;
  const std::string rows(300'000, 'r');
  std::vector<Thread> senders;
  for (int thread = 0; thread < 2; ++thread) {
    senders.emplace_back("sender", [&] {
      for (int i = 0; i < kEach; ++i) near_.Send({{"bytes", rows.size()}}, {}, rows);
    });
  }
  // A failed test ends the senders' waits before it joins them.
  const std::shared_ptr<void> end(nullptr, [&](void*) { far_.End(); });
  std::string got(rows.size(), '\0');
  for (int i = 0; i < 2 * kEach; ++i) {
    ASSERT_EQ(far_.Receive(Soon())->message, Json({{"bytes", rows.size()}}));
    far_.ReceiveData(got.data(), got.size());
    ASSERT_EQ(got, rows);
  }
  for (Thread& sender : senders) sender.Join();
}

TEST_F(MessageChannelTest, AnEndBetweenMessagesIsNone) {
  near_.Send({{"op", "last"}});
  near_.Close();
  EXPECT_TRUE(far_.Receive(Soon()));
  EXPECT_FALSE(far_.Receive(Soon()));
}

TEST_F(MessageChannelTest, AnEndWithinAMessageIsUnavailable) {
  for (const std::string& cut : {std::string("\0\0", 2), EncodeU32(5) + "{\"a"}) {
    auto [near, far] = Connection::Pair();
    MessageChannel channel(std::move(far));
    near.Write(cut, Soon());
    near.Shutdown();
    EXPECT_EQ(Thrown([&] { channel.Receive(Soon()); }).code(), ErrorCode::kUnavailable);
  }
}

TEST_F(MessageChannelTest, ASilentPeerIsADeadlineAndMayGoOn) {
  EXPECT_EQ(Thrown([&] { far_.Receive(Deadline::After(0.02)); }).code(),
            ErrorCode::kDeadlineExceeded);
  near_.Send({{"op", "late"}});
  EXPECT_EQ(far_.Receive(Soon())->message, Json({{"op", "late"}}));
}

TEST_F(MessageChannelTest, TheDeadlineIsThatOfTheWholeMessage) {
  Write(EncodeU32(100) + "{");
  EXPECT_EQ(Thrown([&] { far_.Receive(Deadline::After(0.02)); }).code(),
            ErrorCode::kDeadlineExceeded);
}

TEST_F(MessageChannelTest, WhatIsNoMessageIsDataLoss) {
  for (const std::string& bytes : {EncodeU32(kMaxFrameBytes + 1), EncodeU32(3) + "abc",
                                   EncodeU32(2) + "[]", EncodeU32(1u << 31 | 5)}) {
    auto [near, far] = Connection::Pair();
    MessageChannel channel(std::move(far));
    near.Write(bytes, Soon());
    EXPECT_EQ(Thrown([&] { channel.Receive(Soon()); }).code(), ErrorCode::kDataLoss);
  }
}

TEST_F(MessageChannelTest, EndEndsTheWaitsOfOtherThreads) {
  Thread reader("reader", [&] { EXPECT_FALSE(far_.Receive(Soon())); });
  Thread writer("writer", [&] {
    const Error error = Thrown([&] { far_.Send({{"a", 1}}, {}, std::string(64 << 20, 'x')); });
    EXPECT_EQ(error.code(), ErrorCode::kUnavailable);
  });
  far_.End();
  reader.Join();
  writer.Join();
}

TEST_F(MessageChannelTest, AClosedOneHasNoDescriptorAndSaysSo) {
  const int fd = near_.connection()->fd();
  near_.Close();
  near_.Close();
  EXPECT_EQ(::fcntl(fd, F_GETFD), -1);
  for (const auto& use : std::initializer_list<std::function<void()>>{
           [&] {
             near_.Send({{"a", 1}});
           },
           [&] { near_.Receive(Soon()); }, [&] { near_.Release(); }}) {
    const Error error = Thrown(use);
    EXPECT_EQ(error.code(), ErrorCode::kUnavailable);
    EXPECT_THAT(error.message(), HasSubstr("closed"));
  }
}

TEST_F(MessageChannelTest, GivesItsSocketOnBetweenMessages) {
  near_.Send({{"op", "first"}});
  near_.Send({{"op", "second"}});
  EXPECT_TRUE(far_.Receive(Soon()));
  MessageChannel heir(Connection(far_.Release(), "heir"));
  EXPECT_EQ(heir.Receive(Soon())->message, Json({{"op", "second"}}));
}

TEST_F(MessageChannelTest, BeginsBehindAHandshake) {
  const Credentials credentials(NewToken(), "feed");
  const Identity node = {.generation = 0, .rank = 2};
  Thread server("server", [&] {
    AcceptHandshake(*far_.connection(), credentials, node, Soon());
    far_.Send({{"op", "welcome"}});
  });
  OfferHandshake(*near_.connection(), credentials, node, Soon());
  EXPECT_EQ(near_.Receive(Soon())->message, Json({{"op", "welcome"}}));
  server.Join();
}

}  // namespace
}  // namespace hearth::rendezvous
