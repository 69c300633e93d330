#include "hearth/base/socket.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "hearth/base/testing/accept_testing.h"
#include "hearth/base/testing/error_testing.h"
#include "hearth/base/thread.h"

namespace hearth {
namespace {

TEST(Connection, ALargeMessageArrivesThroughSmallBuffers) {
  TcpListener listener("127.0.0.1");
  const std::string sent(8 << 20, 'x');
  Thread client("client", [&] {
    Connection::Connect("127.0.0.1", listener.port(), Deadline::After(5))
        .Write(sent, Deadline::After(5));
  });
  Connection server = listener.Accept(Deadline::After(5));
  std::string got(sent.size(), '\0');
  server.Read(got.data(), got.size(), Deadline::After(5));
  EXPECT_EQ(got, sent);
  client.Join();
}

TEST(Connection, ASilentPeerIsNamedAtTheDeadline) {
  auto pair = Connection::Pair();
  Connection& a = pair.first;
  char byte;
  const Error error = Thrown([&] { a.Read(&byte, 1, Deadline::After(0.02)); });
  EXPECT_EQ(error.code(), ErrorCode::kDeadlineExceeded);
  EXPECT_THAT(error.message(), testing::HasSubstr("socket pair"));
}

TEST(Connection, WritesToAPeerThatDoesNotReadTimeOut) {
  auto pair = Connection::Pair();
  Connection& a = pair.first;
  const std::string much(16 << 20, 'x');
  const Error error = Thrown([&] { a.Write(much, Deadline::After(0.05)); });
  EXPECT_EQ(error.code(), ErrorCode::kDeadlineExceeded);
}

TEST(Connection, ClosedPeerIsUnavailableAndRaisesNoSignal) {
  auto pair = Connection::Pair();
  Connection &a = pair.first, &b = pair.second;
  b.Write("ab", Deadline::After(1));
  { const Connection gone = std::move(b); }
  char bytes[4];
  const Error error = Thrown([&] { a.Read(bytes, 4, Deadline::After(1)); });
  EXPECT_EQ(error.code(), ErrorCode::kUnavailable);
  EXPECT_THAT(error.message(), testing::HasSubstr("after 2 of 4 bytes"));
  EXPECT_EQ(Thrown([&] { a.Write("x", Deadline::After(1)); }).code(), ErrorCode::kUnavailable);
}

TEST(Connection, ReadSomeReturnsZeroAtTheEnd) {
  auto [a, b] = Connection::Pair();
  b.Write("xyz", Deadline::After(1));
  b.Shutdown();
  char bytes[8];
  EXPECT_EQ(a.ReadSome(bytes, sizeof(bytes), Deadline::After(1)), 3u);
  EXPECT_EQ(a.ReadSome(bytes, sizeof(bytes), Deadline::After(1)), 0u);
}

TEST(Connection, TryReadAndTryWriteDoNotBlock) {
  auto [a, b] = Connection::Pair();
  const std::string much(16 << 20, 'x');
  std::string got(much.size(), '\0');
  EXPECT_FALSE(a.TryRead(got.data(), got.size()));
  const size_t taken = b.TryWrite(much.data(), much.size());
  EXPECT_GT(taken, 0u);
  EXPECT_LT(taken, much.size());
  EXPECT_EQ(b.TryWrite(much.data(), much.size()), 0u);
  EXPECT_GT(a.TryRead(got.data(), got.size()).value_or(0), 0u);
}

TEST(Connection, ShutdownUnblocksAnotherThread) {
  auto [a, b] = Connection::Pair();
  Thread waiter("waiter", [&a = a] {
    char byte;
    a.Read(&byte, 1, Deadline::After(30));
  });
  a.Shutdown();
  EXPECT_EQ(Thrown([&] { waiter.Join(); }).code(), ErrorCode::kUnavailable);
}

TEST(Connection, WaitReadableDistinguishesDataFromTheDeadline) {
  auto [a, b] = Connection::Pair();
  EXPECT_FALSE(a.WaitReadable(Deadline::After(0.01)));
  b.Write("x", Deadline::After(1));
  EXPECT_TRUE(a.WaitReadable(Deadline::After(1)));
}

TEST(Connection, RefusedConnectionNamesHostAndPort) {
  int port = 0;
  {
    const TcpListener closed("127.0.0.1");
    port = closed.port();
  }
  const Error error = Thrown([&] { Connection::Connect("127.0.0.1", port, Deadline::After(2)); });
  EXPECT_EQ(error.code(), ErrorCode::kUnavailable);
  EXPECT_THAT(error.message(), testing::HasSubstr("127.0.0.1:" + std::to_string(port)));
}

TEST(Connection, AnUnknownHostNameIsReported) {
  const Error error =
      Thrown([] { Connection::Connect("no-such-host.invalid", 1, Deadline::After(2)); });
  EXPECT_THAT(error.message(), testing::HasSubstr("no-such-host.invalid"));
}

TEST(TcpListener, AcceptTimesOut) {
  TcpListener listener("127.0.0.1");
  EXPECT_EQ(Thrown([&] { listener.Accept(Deadline::After(0.02)); }).code(),
            ErrorCode::kDeadlineExceeded);
}

TEST(TcpListener, AcceptedConnectionIsNamedByItsAddress) {
  TcpListener listener("127.0.0.1");
  const Connection client = Connection::Connect("127.0.0.1", listener.port(), Deadline::After(2));
  EXPECT_THAT(listener.Accept(Deadline::After(2)).peer(), testing::StartsWith("127.0.0.1:"));
}

TEST(TcpListener, LostClientsAreSkipped) {
  TcpListener listener("127.0.0.1");
  const Connection client = Connection::Connect("127.0.0.1", listener.port(), Deadline::After(2));
  const FailingAccept lost({ECONNABORTED, EPROTO, EHOSTUNREACH, ENETDOWN, EPERM, EINTR});
  EXPECT_THAT(listener.Accept(Deadline::After(0)).peer(), testing::StartsWith("127.0.0.1:"));
  EXPECT_EQ(FailingAccept::left(), 0u);
}

TEST(TcpListener, LostClientsDoNotExtendTheDeadline) {
  TcpListener listener("127.0.0.1");
  const FailingAccept lost({ECONNABORTED});
  EXPECT_EQ(Thrown([&] { listener.Accept(Deadline::After(0)); }).code(),
            ErrorCode::kDeadlineExceeded);
}

TEST(TcpListener, MissingDescriptorsOrMemoryAreReported) {
  TcpListener listener("127.0.0.1");
  for (const int error : {EMFILE, ENFILE, ENOBUFS, ENOMEM}) {
    const FailingAccept exhausted({error});
    EXPECT_EQ(Thrown([&] { listener.Accept(Deadline::After(1)); }).code(),
              ErrorCode::kResourceExhausted);
  }
}

TEST(TcpListener, AUsedPortIsAnError) {
  const TcpListener first("127.0.0.1");
  EXPECT_THROW(TcpListener("127.0.0.1", first.port()), Error);
}

TEST(TcpListener, UsedPortsOfARangeAreSkipped) {
  const TcpListener first("127.0.0.1");
  const PortRange range = {first.port(), 200, "a.port"};
  const TcpListener next("127.0.0.1", range);
  EXPECT_GT(next.port(), first.port());
  EXPECT_LE(next.port(), range.last());
}

TEST(TcpListener, AUsedRangeNamesItsSetting) {
  const TcpListener first("127.0.0.1");
  const int port = first.port();
  const Error error = Thrown([&] { TcpListener("127.0.0.1", PortRange{port, 1, "a.port"}); });
  EXPECT_EQ(error.code(), ErrorCode::kResourceExhausted);
  EXPECT_THAT(error.message(), testing::StartsWith(fmt::format(
                                   "no port of a.port ({0}-{0}) is free: cannot listen on", port)));
}

TEST(TcpListener, ARemoteAddressFailsAtOnce) {
  const Error error = Thrown([&] { TcpListener("192.0.2.1", PortRange{7300, 9, "a.port"}); });
  EXPECT_THAT(error.message(), testing::StartsWith("cannot listen on 192.0.2.1:7300: "));
}

}  // namespace
}  // namespace hearth
