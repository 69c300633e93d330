#include "hearth/collective/transport/peer_stream.h"

#include <gmock/gmock.h>

#include <array>
#include <cerrno>
#include <string>
#include <string_view>
#include <utility>

#include "hearth/base/testing/deadline_testing.h"
#include "hearth/base/testing/error_testing.h"

namespace hearth::collective {
namespace {

iovec PartOf(std::string& text) { return {text.data(), text.size()}; }

// A stream to "rank 3 on host b"; the test holds the other end as a plain connection.
class PlainStreamTest : public ::testing::Test {
 protected:
  PlainStreamTest() {
    auto [own, theirs] = Connection::Pair();
    stream_ = MakePlainStream(std::move(own), {3, "b"});
    peer_.emplace(std::move(theirs));
  }

  size_t Send(std::string text) {
    const std::array parts = {PartOf(text)};
    return stream_->Send(parts);
  }
  // Returns at most `size` of the bytes that have arrived.
  std::string Receive(size_t size) {
    std::string text(size, '-');
    const std::array parts = {PartOf(text)};
    text.resize(stream_->Receive(parts));
    return text;
  }

  std::unique_ptr<PeerStream> stream_;
  std::optional<Connection> peer_;
};

TEST_F(PlainStreamTest, GathersAndScattersPartsInOrder) {
  std::string first = "ab", second = "cde", third(1, '-'), fourth(9, '-');
  const std::array sent = {PartOf(first), PartOf(second)};
  EXPECT_EQ(stream_->Send(sent), 5U);
  std::string arrived(5, '-');
  peer_->Read(arrived.data(), arrived.size(), Soon());
  EXPECT_EQ(arrived, "abcde");
  peer_->Write("vwxyz", Soon());
  const std::array received = {PartOf(third), PartOf(fourth)};
  EXPECT_EQ(stream_->Receive(received), 5U);
  EXPECT_EQ(third + fourth, "vwxyz-----");
}

TEST_F(PlainStreamTest, NeitherDirectionBlocks) {
  EXPECT_EQ(Receive(10), "");
  const std::string text(100'000, 'x');
  size_t sent = 0;
  while (const size_t more = Send(text)) sent += more;
  std::string arrived(sent, '-');
  peer_->Read(arrived.data(), arrived.size(), Soon());
  EXPECT_EQ(arrived, std::string(sent, 'x'));
  EXPECT_GT(Send(text), 0U) << "there is space again";
}

TEST_F(PlainStreamTest, DataSentBeforeThePeerLeftIsReceivedBeforeItsError) {
  peer_->Write("last", Soon());
  EXPECT_FALSE(HasEnded(stream_->fd()));
  peer_.reset();
  EXPECT_TRUE(HasEnded(stream_->fd()));
  EXPECT_EQ(Receive(2), "la");
  EXPECT_EQ(Receive(10), "st");
  const Error error = Thrown([&] { Receive(10); });
  EXPECT_EQ(error.code(), ErrorCode::kUnavailable);
  EXPECT_EQ(error.message(), "rank 3 on host b closed the connection");
}

// An unhandled SIGPIPE would end the process.
TEST_F(PlainStreamTest, SendingToAPeerThatLeftIsAnError) {
  peer_.reset();
  const Error error = Thrown([&] { Send("x"); });
  EXPECT_EQ(error.code(), ErrorCode::kUnavailable);
  EXPECT_EQ(error.message(), "rank 3 on host b closed the connection");
}

TEST_F(PlainStreamTest, ShutdownEndsBothDirectionsAndMayBeRepeated) {
  stream_->Shutdown();
  stream_->Shutdown();
  EXPECT_EQ(CodeOf([&] { Send("x"); }), ErrorCode::kUnavailable);
  EXPECT_EQ(CodeOf([&] { Receive(1); }), ErrorCode::kUnavailable);
  char byte = 0;
  EXPECT_EQ(peer_->ReadSome(&byte, 1, Soon()), 0U);
}

TEST(WouldBlockTest, IsTrueForErrorsThatEndByThemselves) {
  for (const int number : {EAGAIN, EINTR}) EXPECT_TRUE(WouldBlock(number));
  for (const int number : {EPIPE, ECONNRESET, EBADF}) EXPECT_FALSE(WouldBlock(number));
}

}  // namespace
}  // namespace hearth::collective
