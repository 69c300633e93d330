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
    near_.emplace(Fd(sockets[0]));
    far_.emplace(Fd(sockets[1]));
  }
  std::optional<RingSignal> near_;
  std::optional<RingSignal> far_;
  std::atomic<uint32_t> near_waits_ = 0;
};

TEST_F(RingSignalTest, WakesWhenThePeerMakesItReady) {
  std::atomic<int> steps = 0;
  std::thread other([&] {
    for (int i = 0; i < 1000; ++i) {
      ++steps;
      far_->Notify(near_waits_);
    }
  });
  EXPECT_EQ(near_->WaitUntil(near_waits_, Soon(), [&] { return steps == 1000; }), Outcome::kWoken);
  other.join();
}

TEST_F(RingSignalTest, SendsNothingIfThePeerDoesNotWait) {
  far_->Notify(near_waits_);
  EXPECT_EQ(near_->WaitUntil(near_waits_, Deadline::After(0.02), [] { return false; }),
            Outcome::kTimeout);
  EXPECT_EQ(near_waits_, 0u);
}

TEST_F(RingSignalTest, ReadyConditionNeedsNoLivePeer) {
  far_.reset();
  EXPECT_EQ(near_->WaitUntil(near_waits_, Soon(), [] { return true; }), Outcome::kWoken);
  EXPECT_EQ(near_->WaitUntil(near_waits_, Soon(), [] { return false; }), Outcome::kPeerGone);
  EXPECT_TRUE(near_->PeerGone());
}

TEST_F(RingSignalTest, ShutdownWakesBothSides) {
  EXPECT_FALSE(far_->PeerGone());
  std::thread closer([&] { near_->Shutdown(); });
  EXPECT_EQ(near_->WaitUntil(near_waits_, Soon(), [] { return false; }), Outcome::kPeerGone);
  closer.join();
  EXPECT_TRUE(far_->PeerGone());
}

}  // namespace
}  // namespace hearth::ring
