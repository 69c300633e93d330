#include "hearth/collective/operation/abort_signal.h"

#include <gtest/gtest.h>
#include <poll.h>

#include "hearth/base/error.h"
#include "hearth/base/socket.h"
#include "hearth/base/thread.h"
#include "hearth/collective/operation/futex.h"

namespace hearth::collective {
namespace {

std::string ReasonOf(const AbortSignal& signal) {
  try {
    signal.ThrowIfRaised();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kAborted);
    return error.message();
  }
  return "not raised";
}

TEST(AbortSignal, IsNotRaisedInitially) {
  const AbortSignal signal;
  EXPECT_FALSE(signal.raised());
  EXPECT_EQ(ReasonOf(signal), "not raised");
  EXPECT_EQ(PollOne(signal.fd(), POLLIN, Deadline::After(0)), 0);
}

TEST(AbortSignal, KeepsTheFirstReason) {
  AbortSignal signal;
  signal.Raise("rank 3 failed");
  signal.Raise("rank 4 failed because of it");
  EXPECT_TRUE(signal.raised());
  EXPECT_EQ(ReasonOf(signal), "rank 3 failed");
}

TEST(AbortSignal, WakesAPollInAnotherThread) {
  AbortSignal signal;
  Thread raiser("raiser", [&] { signal.Raise("over"); });
  EXPECT_NE(PollOne(signal.fd(), POLLIN, Deadline::After(30)) & POLLIN, 0);
  EXPECT_EQ(ReasonOf(signal), "over");
  raiser.Join();
}

TEST(AbortSignal, WakesAFutexWaiter) {
  AbortSignal signal;
  std::atomic<uint32_t> word{0};
  signal.WakeToo(&word);
  const Deadline deadline = Deadline::After(30);
  Thread raiser("raiser", [&] { signal.Raise("over"); });
  while (word.load() == 0 && !deadline.expired()) WaitWhileEqual(word, 0, deadline);
  EXPECT_FALSE(deadline.expired());
  raiser.Join();
}

TEST(AbortSignal, DoesNotChangeAForgottenWord) {
  AbortSignal signal;
  std::atomic<uint32_t> word{0};
  signal.WakeToo(&word);
  signal.Forget();
  signal.Raise("over");
  EXPECT_EQ(word.load(), 0U);
}

}  // namespace
}  // namespace hearth::collective
