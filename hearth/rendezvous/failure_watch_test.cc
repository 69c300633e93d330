#include "hearth/rendezvous/failure_watch.h"

#include <gtest/gtest.h>

#include <future>

#include "hearth/base/thread.h"

namespace hearth::rendezvous {
namespace {

TEST(FailureWatch, KeepsTheFirstFailure) {
  FailureWatch watch;
  EXPECT_FALSE(watch.failed());
  watch.Set({.rank = 2});
  watch.Set({.rank = 5});
  EXPECT_EQ(watch.failure()->rank, 2);
}

TEST(FailureWatch, EveryCallbackIsCalledOnce) {
  FailureWatch watch;
  int calls = 0;
  const auto before = watch.Subscribe([&](const Failure&) { ++calls; });
  watch.Set({.rank = 1});
  watch.Set({.rank = 2});
  EXPECT_EQ(calls, 1);
  const auto late = watch.Subscribe([&](const Failure& failure) { calls += 10 * failure.rank; });
  EXPECT_EQ(calls, 11);
}

TEST(FailureWatch, CallbackMayCallFailure) {
  FailureWatch watch;
  int rank = -1;
  const auto subscription = watch.Subscribe([&](const Failure&) { rank = watch.failure()->rank; });
  watch.Set({.rank = 4});
  EXPECT_EQ(rank, 4);
}

TEST(FailureWatch, CancelledCallbackIsNotCalled) {
  FailureWatch watch;
  int calls = 0;
  auto kept = watch.Subscribe([&](const Failure&) { ++calls; });
  {
    const auto dropped = watch.Subscribe([&](const Failure&) { calls += 100; });
  }
  auto moved = std::move(kept);
  watch.Set({.rank = 1});
  EXPECT_EQ(calls, 1);
}

TEST(FailureWatch, CancelWaitsForARunningCall) {
  FailureWatch watch;
  std::promise<void> entered, leave;
  bool finished = false;
  auto subscription = watch.Subscribe([&](const Failure&) {
    entered.set_value();
    leave.get_future().wait();
    finished = true;
  });
  Thread setter("setter", [&] { watch.Set({.rank = 1}); });
  entered.get_future().wait();
  Thread helper("helper", [&] { leave.set_value(); });
  subscription.Cancel();
  EXPECT_TRUE(finished);
}

TEST(FailureWatch, SubscriptionMayOutliveTheWatch) {
  FailureWatch::Subscription subscription;
  {
    FailureWatch watch;
    subscription = watch.Subscribe([](const Failure&) {});
  }
  subscription.Cancel();
}

}  // namespace
}  // namespace hearth::rendezvous
