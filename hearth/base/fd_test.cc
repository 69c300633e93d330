#include "hearth/base/fd.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "hearth/base/error.h"

namespace hearth {
namespace {

bool IsOpen(int fd) { return ::fcntl(fd, F_GETFD) != -1; }

TEST(Fd, ClosesItsDescriptorOnce) {
  const int number = ::dup(0);
  { const Fd fd(number); }
  EXPECT_FALSE(IsOpen(number));
}

TEST(Fd, MoveTransfersTheDescriptor) {
  Fd a(::dup(0));
  const int number = a.get();
  Fd b(::dup(0));
  const int replaced = b.get();
  b = std::move(a);
  EXPECT_FALSE(a.valid());  // NOLINT(bugprone-use-after-move)
  EXPECT_EQ(b.get(), number);
  EXPECT_FALSE(IsOpen(replaced));
}

TEST(Fd, ReleasedDescriptorStaysOpen) {
  int number = -1;
  {
    Fd fd(::dup(0));
    number = fd.Release();
  }
  EXPECT_TRUE(IsOpen(number));
  ::close(number);
}

TEST(Fd, ADuplicateIsIndependentAndClosedOnExec) {
  Fd copy = Duplicate(0);
  EXPECT_TRUE(copy.get() > 0 && IsOpen(copy.get()));
  EXPECT_EQ(::fcntl(copy.get(), F_GETFD), FD_CLOEXEC);
  copy.Reset();
  EXPECT_TRUE(IsOpen(0));
}

TEST(Fd, ADuplicateOfNoDescriptorIsAnErrorThatNamesIt) {
  EXPECT_THAT([] { Duplicate(-1); },
              ::testing::ThrowsMessage<Error>(::testing::HasSubstr("descriptor -1")));
}

}  // namespace
}  // namespace hearth
