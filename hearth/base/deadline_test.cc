#include "hearth/base/deadline.h"

#include <gtest/gtest.h>

namespace hearth {
namespace {

TEST(Deadline, NeverDoesNotExpire) {
  EXPECT_FALSE(Deadline::Never().expired());
  EXPECT_EQ(Deadline::Never().poll_timeout_ms(), -1);
  EXPECT_GT(Deadline::Never().remaining(), 1e300);
}

TEST(Deadline, APastDeadlineIsExpiredAndNotNegative) {
  const Deadline past = Deadline::After(-1);
  EXPECT_TRUE(past.expired());
  EXPECT_EQ(past.remaining(), 0.0);
  EXPECT_EQ(past.poll_timeout_ms(), 0);
}

TEST(Deadline, PollTimeoutIsRoundedUp) {
  const Deadline soon = Deadline::After(0.0105);
  EXPECT_GE(soon.poll_timeout_ms(), 1);
  EXPECT_LE(soon.poll_timeout_ms(), 11);
}

TEST(Deadline, DistantDeadlineFitsThePollTimeout) {
  EXPECT_EQ(Deadline::After(1e8).poll_timeout_ms(), 1'000'000'000);
}

}  // namespace
}  // namespace hearth
