#include "hearth/rendezvous/link.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "hearth/base/testing/deadline_testing.h"
#include "hearth/rendezvous/handshake.h"
#include "hearth/rendezvous/testing/cluster_testing.h"

namespace hearth::rendezvous {
namespace {

class LinkTest : public testing::Test {
 protected:
  LinkTest() : LinkTest(Connection::Pair()) {}

  Connection peer_;
  Link link_;

 private:
  explicit LinkTest(std::pair<Connection, Connection> ends)
      : peer_(std::move(ends.second)), link_(std::move(ends.first), "hello", Soon()) {}
};

TEST_F(LinkTest, SendsTheHello) {
  link_.Greet();
  char bytes[5];
  peer_.Read(bytes, 5, Soon());
  EXPECT_EQ(std::string(bytes, 5), "hello");
}

TEST_F(LinkTest, TheClaimIsReturnedOnlyWhenComplete) {
  const std::string claim(kClaimBytes, 'c');
  peer_.Write(claim.substr(0, 50), Soon());
  EXPECT_TRUE(link_.Receive());
  EXPECT_FALSE(link_.TakeClaim());
  peer_.Write(claim.substr(50), Soon());
  EXPECT_TRUE(link_.Receive());
  EXPECT_EQ(link_.TakeClaim(), claim);
}

TEST_F(LinkTest, UnauthenticatedClientsCannotStoreMoreThanAClaim) {
  peer_.Write(std::string(kClaimBytes + 1, 'c'), Soon());
  EXPECT_EQ(Thrown([&] { link_.Receive(); }).code(), ErrorCode::kInvalidArgument);
}

TEST_F(LinkTest, MemberBytesAreFramesAndExtendTheSilenceTimeout) {
  peer_.Write(std::string(kClaimBytes, 'c'), Soon());
  link_.Receive();
  link_.SetRank(1);
  link_.SetSilenceTimeout(5);
  const Deadline before = link_.silent_after();
  peer_.Write(EncodeMessage({{"type", "event"}}), Soon());
  EXPECT_TRUE(link_.Receive());
  EXPECT_EQ(link_.TakeFrame()->at("type"), "event");
  EXPECT_FALSE(link_.TakeFrame());
  EXPECT_GT(link_.silent_after().at(), before.at());
}

TEST_F(LinkTest, EndOfFileIsReported) {
  peer_.Shutdown();
  EXPECT_FALSE(link_.Receive());
}

TEST_F(LinkTest, PendingDataIsLimited) {
  const std::string much(2 << 20, 'x');
  link_.Send(much);
  EXPECT_FALSE(link_.flushed());
  const Error error = Thrown([&] {
    for (int i = 0; i < 8; ++i) link_.Send(much);
  });
  EXPECT_EQ(error.code(), ErrorCode::kResourceExhausted);
  EXPECT_THAT(error.message(), testing::HasSubstr("does not read"));
}

}  // namespace
}  // namespace hearth::rendezvous
