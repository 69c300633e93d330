#include "hearth/base/parent_death.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "hearth/base/deadline.h"
#include "hearth/base/error.h"
#include "hearth/base/socket.h"

namespace hearth {
namespace {

TEST(ParentDeath, AKilledParentEndsTheChild) {
  auto [here, there] = Connection::Pair();
  const pid_t parent = ::fork();
  if (parent == 0) {
    const pid_t self = ::getpid();
    if (::fork() == 0) {
      DieWithParent(self);
      there.Write("r", Deadline::After(5));  // ready: the parent may now die
      ::pause();
    }
    ::pause();
  }
  { const Connection closed = std::move(there); }
  char byte;
  here.Read(&byte, 1, Deadline::After(5));
  ::kill(parent, SIGKILL);
  ::waitpid(parent, nullptr, 0);
  // The child held the last copy of the socket: end of file means that it is dead.
  EXPECT_EQ(here.ReadSome(&byte, 1, Deadline::After(5)), 0u);
}

TEST(ParentDeath, AMissingParentIsAnError) {
  const pid_t child = ::fork();
  if (child == 0) {
    try {
      DieWithParent(1234567);
    } catch (const Error& error) {
      ::_exit(error.code() == ErrorCode::kUnavailable ? 7 : 1);
    }
    ::_exit(0);
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  EXPECT_EQ(WEXITSTATUS(status), 7);
}

}  // namespace
}  // namespace hearth
