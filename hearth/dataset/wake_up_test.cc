#include "hearth/dataset/wake_up.h"

#include <gtest/gtest.h>
#include <pthread.h>

#include <atomic>
#include <csignal>
#include <future>
#include <mutex>
#include <stdexcept>
#include <thread>
#include <vector>

#include "hearth/base/on_signal.h"
#include "hearth/base/testing/deadline_testing.h"
#include "hearth/base/thread.h"

namespace hearth::dataset {
namespace {

class WakeUpTest : public ::testing::Test {
 protected:
  bool Wait(Deadline deadline) {
    std::unique_lock lock(mutex_);
    const bool woken = wake_up_.Wait(lock, deadline, [this] {
      ++asked_;
      return ready_;
    });
    EXPECT_TRUE(lock.owns_lock());
    return woken;
  }
  void Set(bool ready) {
    const std::lock_guard lock(mutex_);
    ready_ = ready;
    wake_up_.NotifyAll();
  }
  // Waits until the condition has been evaluated `count` times in total.
  void AwaitAsked(int count) {
    while (asked_ < count) std::this_thread::yield();
  }

  std::mutex mutex_;
  WakeUp wake_up_;
  bool ready_ = false;
  std::atomic<int> asked_ = 0;
};

TEST_F(WakeUpTest, ReturnsAtOnceIfTheConditionHolds) {
  Set(true);
  EXPECT_TRUE(Wait(Deadline::After(0)));
}

TEST_F(WakeUpTest, WakesAllWaitingThreads) {
  std::vector<Thread> threads;
  for (int i = 0; i < 3; ++i) {
    threads.emplace_back("wait", [this] { EXPECT_TRUE(Wait(Soon())); });
  }
  AwaitAsked(3);
  Set(true);
  for (Thread& thread : threads) thread.Join();
}

TEST_F(WakeUpTest, WaitsOnIfTheConditionDoesNotHoldYet) {
  Thread waiting("wait", [this] { EXPECT_TRUE(Wait(Soon())); });
  AwaitAsked(1);
  Set(false);
  AwaitAsked(2);
  Set(true);
  waiting.Join();
}

TEST_F(WakeUpTest, ReturnsFalseAtTheDeadline) {
  EXPECT_FALSE(Wait(Deadline::After(0.01)));
  EXPECT_FALSE(Wait(Deadline::After(0)));
  Set(true);
  EXPECT_TRUE(Wait(Soon()));
}

TEST_F(WakeUpTest, ThrowsWhatTheConditionThrowsWithTheMutexLocked) {
  std::unique_lock lock(mutex_);
  const auto fail = []() -> bool { throw std::runtime_error("condition"); };
  EXPECT_THROW(wake_up_.Wait(lock, Soon(), fail), std::runtime_error);
  EXPECT_TRUE(lock.owns_lock());
}

// Python's signal handlers do this for KeyboardInterrupt.
TEST_F(WakeUpTest, ASignalHandlerCanEndTheWait) {
  struct sigaction action {
  }, before{};
  action.sa_handler = [](int) {};
  ASSERT_EQ(::sigaction(SIGUSR1, &action, &before), 0);
  std::promise<pthread_t> started;
  std::atomic<bool> ended = false;
  Thread waiting("wait", [&] {
    started.set_value(::pthread_self());
    const OnSignal hook([] { throw std::runtime_error("interrupted"); });
    std::unique_lock lock(mutex_);
    const auto never = [this] {
      ++asked_;
      return false;
    };
    EXPECT_THROW(wake_up_.Wait(lock, Soon(), never), std::runtime_error);
    EXPECT_TRUE(lock.owns_lock());
    ended = true;
  });
  const pthread_t thread = started.get_future().get();
  AwaitAsked(1);
  // A signal before the thread waits has no effect, so signals are sent until the wait has ended.
  while (!ended) {
    ::pthread_kill(thread, SIGUSR1);
    std::this_thread::yield();
  }
  waiting.Join();
  ::sigaction(SIGUSR1, &before, nullptr);
}

}  // namespace
}  // namespace hearth::dataset
