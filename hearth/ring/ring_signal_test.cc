#include "hearth/ring/ring_signal.h"

#include <sys/socket.h>

#include <optional>
#include <thread>

#include "hearth/base/testing/deadline_testing.h"

namespace hearth::ring {
namespace {

using Outcome = RingSignal::Outcome;

class RingSignalTest : public ::testing::Test {
 protected:
  RingSignalTest() {
    int sockets[2];
    EXPECT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, sockets), 0);
    local_.emplace(Fd(sockets[0]));
    peer_.emplace(Fd(sockets[1]));
  }
  std::optional<RingSignal> local_;
  std::optional<RingSignal> peer_;
  std::atomic<uint32_t> local_waits_ = 0;
};

TEST_F(RingSignalTest, WakesWhenThePeerMakesItReady) {
  std::atomic<int> steps = 0;
  std::thread other([&] {
    for (int i = 0; i < 1000; ++i) {
      ++steps;
      peer_->Notify(local_waits_);
    }
  });
  EXPECT_EQ(local_->WaitUntil(local_waits_, Soon(), [&] { return steps == 1000; }),
            Outcome::kWoken);
  other.join();
}

TEST_F(RingSignalTest, SendsNothingIfThePeerDoesNotWait) {
  peer_->Notify(local_waits_);
  EXPECT_EQ(local_->WaitUntil(local_waits_, Deadline::After(0.02), [] { return false; }),
            Outcome::kTimeout);
  EXPECT_EQ(local_waits_, 0u);
}

TEST_F(RingSignalTest, ReadyConditionNeedsNoLivePeer) {
  peer_.reset();
  EXPECT_EQ(local_->WaitUntil(local_waits_, Soon(), [] { return true; }), Outcome::kWoken);
  EXPECT_EQ(local_->WaitUntil(local_waits_, Soon(), [] { return false; }), Outcome::kPeerGone);
  EXPECT_TRUE(local_->PeerGone());
}

TEST_F(RingSignalTest, ShutdownWakesBothSides) {
  EXPECT_FALSE(peer_->PeerGone());
  std::thread closer([&] { local_->Shutdown(); });
  EXPECT_EQ(local_->WaitUntil(local_waits_, Soon(), [] { return false; }), Outcome::kPeerGone);
  closer.join();
  EXPECT_TRUE(peer_->PeerGone());
}

}  // namespace
}  // namespace hearth::ring
