#include "hearth/trainer/job/control_channel.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <future>
#include <thread>

#include "hearth/base/error.h"

namespace hearth::trainer {
namespace {

class ControlChannelTest : public ::testing::Test {
 protected:
  void SetUp() override {
    int fds[2];
    ASSERT_EQ(socketpair(AF_UNIX, SOCK_STREAM, 0, fds), 0);
    channel_ = std::make_unique<ControlChannel>(Fd(fds[0]));
    worker_ = fds[1];
  }
  void TearDown() override { CloseWorker(); }

  void CloseWorker() {
    if (worker_ >= 0) close(worker_);
    worker_ = -1;
  }
  void Write(const std::string& text) {
    ASSERT_EQ(write(worker_, text.data(), text.size()), static_cast<ssize_t>(text.size()));
  }
  std::string ReadEvent() {
    std::string line;
    for (char c; read(worker_, &c, 1) == 1 && c != '\n';) line += c;
    return line;
  }
  ErrorCode ReadError(double seconds) {
    try {
      channel_->ReadLine(Deadline::After(seconds));
    } catch (const Error& error) {
      return error.code();
    }
    return ErrorCode::kInternal;
  }

  std::unique_ptr<ControlChannel> channel_;
  int worker_ = -1;
};

TEST_F(ControlChannelTest, ReadsALineThatArrivesInParts) {
  auto line = std::async([&] { return channel_->ReadLine(Deadline::After(5)); });
  Write("{\"mode\":");
  Write("\"train\"}\nmore");
  EXPECT_EQ(line.get(), "{\"mode\":\"train\"}");
}

TEST_F(ControlChannelTest, ReadsALineOfMegabytes) {
  const std::string text(3 << 20, 'x');
  auto line = std::async([&] { return channel_->ReadLine(Deadline::After(5)); });
  Write(text + "\n");
  EXPECT_EQ(line.get(), text);
}

TEST_F(ControlChannelTest, EndOfStreamBeforeTheJobIsAnError) {
  Write("{\"mode\"");
  CloseWorker();
  EXPECT_EQ(ReadError(5), ErrorCode::kUnavailable);
}

TEST_F(ControlChannelTest, ASilentPeerExceedsTheDeadline) {
  EXPECT_EQ(ReadError(0.05), ErrorCode::kDeadlineExceeded);
}

TEST_F(ControlChannelTest, EventsOfManyThreadsAreWholeLines) {
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&] {
      for (int i = 0; i < 50; ++i)
        channel_->Send({{"event", "log"}, {"text", "a \"quoted\" line"}});
    });
  }
  for (int i = 0; i < 200; ++i) {
    EXPECT_EQ(nlohmann::json::parse(ReadEvent())["text"], "a \"quoted\" line");
  }
  for (auto& thread : threads) thread.join();
}

TEST_F(ControlChannelTest, SendsTextThatIsNotUtf8) {
  channel_->Send({{"event", "error"}, {"message", "bad byte \xff here"}});
  EXPECT_THAT(ReadEvent(), ::testing::HasSubstr("here"));
}

TEST_F(ControlChannelTest, ReportsOnceThatThePeerIsGone) {
  std::promise<void> lost;
  channel_->Watch([&] { lost.set_value(); });
  CloseWorker();
  EXPECT_EQ(lost.get_future().wait_for(std::chrono::seconds(60)), std::future_status::ready);
  channel_->Send({{"event", "ready"}});  // there is no reader, but no signal or error either
}

TEST_F(ControlChannelTest, DestructionIsNotALoss) {
  bool lost = false;
  channel_->Watch([&] { lost = true; });
  channel_.reset();
  EXPECT_FALSE(lost);
}

}  // namespace
}  // namespace hearth::trainer
