#include "hearth/base/descriptors.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <array>
#include <string>

#include "hearth/base/error.h"

namespace hearth {
namespace {

Deadline Soon() { return Deadline::After(5); }

TEST(Descriptors, ArriveWithTheFirstByteAndAreTheSameFiles) {
  auto [near, far] = Connection::Pair();
  auto [left, right] = Connection::Pair();
  const std::array fds = {left.fd(), right.fd()};
  EXPECT_EQ(WriteWithDescriptors(near, "ab", fds, Soon()), 2u);
  std::vector<Fd> came;
  char byte = 0;
  ASSERT_EQ(ReadWithDescriptors(far, &byte, 1, &came, Soon()), 1u);
  ASSERT_EQ(came.size(), 2u);
  EXPECT_EQ(::fcntl(came[0].get(), F_GETFD), FD_CLOEXEC);
  Connection(std::move(came[0]), "left").Write("x", Soon());
  Connection(std::move(came[1]), "right").Read(&byte, 1, Soon());
  EXPECT_EQ(byte, 'x');
  EXPECT_EQ(ReadWithDescriptors(far, &byte, 1, &came, Soon()), 1u);
  EXPECT_EQ(came.size(), 2u);
}

TEST(Descriptors, BytesComeWithoutThoseThatThisProcessCannotHave) {
  auto [near, far] = Connection::Pair();
  WriteWithDescriptors(near, "a", std::array{near.fd(), far.fd()}, Soon());
  rlimit before = {};
  ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &before), 0);
  // Of all numbers only the next free one is left.
  const rlimit tight = {static_cast<rlim_t>(Fd(::dup(0)).get()) + 1, before.rlim_max};
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &tight), 0);
  std::vector<Fd> came;
  char byte = 0;
  const size_t got = ReadWithDescriptors(far, &byte, 1, &came, Soon());
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &before), 0);
  EXPECT_EQ(got, 1u);
  EXPECT_EQ(came.size(), 1u);
}

TEST(Descriptors, WaitsHaveADeadline) {
  auto [near, far] = Connection::Pair();
  std::vector<Fd> came;
  char byte = 0;
  EXPECT_THROW(ReadWithDescriptors(far, &byte, 1, &came, Deadline::After(0.02)), Error);
  while (near.TryWrite("xxxxxxxx", 8) > 0) continue;
  EXPECT_THROW(WriteWithDescriptors(near, "a", std::array{near.fd()}, Deadline::After(0.02)),
               Error);
}

TEST(Descriptors, AnEndIsAnEndAndAPeerThatIsGoneUnavailable) {
  auto [near, far] = Connection::Pair();
  near.Shutdown();
  std::vector<Fd> came;
  char byte = 0;
  EXPECT_EQ(ReadWithDescriptors(far, &byte, 1, &came, Soon()), 0u);
  try {
    WriteWithDescriptors(far, "a", std::array{near.fd()}, Soon());
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kUnavailable);
  }
}

TEST(Descriptors, TooManyAreRefused) {
  auto [near, far] = Connection::Pair();
  const std::vector<int> many(kMaxDescriptors + 1, near.fd());
  EXPECT_THROW(WriteWithDescriptors(near, "a", many, Soon()), Error);
}

}  // namespace
}  // namespace hearth
