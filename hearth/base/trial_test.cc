#include "hearth/base/trial.h"

#include <gmock/gmock.h>
#include <signal.h>

#include <atomic>
#include <chrono>
#include <cstdlib>
#include <mutex>
#include <stdexcept>
#include <thread>

namespace hearth {
namespace {

using testing::HasSubstr;

constexpr unsigned kSeconds = 60;

TEST(Trial, WorkThatReturnsSurvives) {
  std::mutex mutex;
  EXPECT_TRUE(RunTrial(mutex, kSeconds, [] {}).survived);
  EXPECT_TRUE(RunTrial(mutex, kSeconds, [] { throw std::runtime_error("refused"); }).survived);
}

TEST(Trial, ACrashIsReportedAndEndsOnlyTheChild) {
  std::mutex mutex;
  const TrialEnd end = RunTrial(mutex, kSeconds, [] { ::raise(SIGSEGV); });
  EXPECT_FALSE(end.survived);
  EXPECT_THAT(end.how, HasSubstr("signal 11"));
  EXPECT_THAT(RunTrial(mutex, kSeconds, [] { std::_Exit(3); }).how, HasSubstr("exit status 3"));
}

TEST(Trial, AnEndlessLoopIsKilled) {
  std::mutex mutex;
  const TrialEnd end = RunTrial(mutex, 1, [] {
    for (volatile bool forever = true; forever;) {
    }
  });
  EXPECT_FALSE(end.survived);
}

// As in a child that was forked while another thread loaded a library.
TEST(Trial, ADeadlockedChildIsKilledWithoutACrash) {
  std::mutex mutex, held;
  const std::lock_guard<std::mutex> lock(held);
  const auto wait = [&] { const std::lock_guard<std::mutex> never(held); };
  EXPECT_TRUE(RunTrial(mutex, kSeconds, wait, std::chrono::milliseconds(200)).survived);
}

TEST(Trial, ATerminationSignalIsNotACrash) {
  std::mutex mutex;
  for (const int number : {SIGTERM, SIGINT, SIGHUP}) {
    const TrialEnd end = RunTrial(mutex, kSeconds, [&] { ::raise(number); });
    EXPECT_TRUE(end.survived) << end.how;
  }
}

TEST(Trial, AKillIsNotACrash) {
  std::mutex mutex;
  EXPECT_TRUE(RunTrial(mutex, kSeconds, [] { ::raise(SIGKILL); }).killed);
  EXPECT_FALSE(RunTrial(mutex, kSeconds, [] { ::raise(SIGSEGV); }).killed);
}

TEST(Trial, IgnoringSigchldIsNotACrash) {
  std::mutex mutex;
  const auto before = ::signal(SIGCHLD, SIG_IGN);
  EXPECT_TRUE(RunTrial(mutex, kSeconds, [] {}).survived);
  EXPECT_FALSE(RunTrial(mutex, kSeconds, [] { std::abort(); }).survived);
  ::signal(SIGCHLD, before);
}

TEST(Trial, TheMutexIsFreeInTheChild) {
  std::mutex mutex;
  std::atomic<bool> over = false;
  std::thread other([&] {
    while (!over) {
      const std::lock_guard<std::mutex> lock(mutex);
      std::this_thread::yield();
    }
  });
  for (int i = 0; i < 50; ++i) {
    const TrialEnd end = RunTrial(mutex, kSeconds, [&] {
      if (!mutex.try_lock()) std::abort();
    });
    EXPECT_TRUE(end.survived) << end.how;
  }
  over = true;
  other.join();
}

}  // namespace
}  // namespace hearth
