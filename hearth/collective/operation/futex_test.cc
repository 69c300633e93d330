#include "hearth/collective/operation/futex.h"

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <new>

#include "hearth/base/thread.h"
#include "hearth/collective/testing/failure_testing.h"

namespace hearth::collective {
namespace {

TEST(Futex, DoesNotWaitIfTheWordHasChanged) {
  std::atomic<uint32_t> word{5};
  const Deadline deadline = Deadline::After(kLong);
  WaitWhileEqual(word, 4, deadline);
  EXPECT_FALSE(deadline.expired());
}

TEST(Futex, ReturnsAtTheDeadlineWithoutAWakeUp) {
  std::atomic<uint32_t> word{5};
  const Deadline deadline = Deadline::After(0.05);
  while (!deadline.expired()) WaitWhileEqual(word, 5, deadline);
  WaitWhileEqual(word, 5, deadline);  // already expired: returns at once
  EXPECT_EQ(word.load(), 5U);
}

TEST(Futex, BumpWakesAThread) {
  std::atomic<uint32_t> word{5};
  const Deadline deadline = Deadline::After(kLong);
  Thread waker("waker", [&] { BumpAndWake(word); });
  while (word.load() == 5 && !deadline.expired()) WaitWhileEqual(word, 5, deadline);
  EXPECT_EQ(word.load(), 6U);
  EXPECT_FALSE(deadline.expired());
  waker.Join();
}

TEST(Futex, BumpWakesAnotherProcess) {
  void* page = ::mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  ASSERT_NE(page, MAP_FAILED);
  auto* words = new (page) std::atomic<uint32_t>[2]();
  const Deadline deadline = Deadline::After(kLong);
  const pid_t child = ::fork();
  if (child == 0) {
    BumpAndWake(words[0]);
    while (words[1].load() == 0 && !deadline.expired()) WaitWhileEqual(words[1], 0, deadline);
    ::_exit(deadline.expired() ? 1 : 0);
  }
  while (words[0].load() == 0 && !deadline.expired()) WaitWhileEqual(words[0], 0, deadline);
  BumpAndWake(words[1]);
  int status = -1;
  ::waitpid(child, &status, 0);
  EXPECT_EQ(status, 0);
  EXPECT_FALSE(deadline.expired());
  ::munmap(page, 4096);
}

}  // namespace
}  // namespace hearth::collective
