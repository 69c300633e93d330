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

TEST(Descriptors, ArriveWithTheFirstByteAsTheSameFiles) {
  auto [local, remote] = Connection::Pair();
  auto [left, right] = Connection::Pair();
  const std::array fds = {left.fd(), right.fd()};
  EXPECT_EQ(WriteWithDescriptors(local, "ab", fds, Soon()), 2u);
  std::vector<Fd> received;
  char byte = 0;
  ASSERT_EQ(ReadWithDescriptors(remote, &byte, 1, &received, Soon()), 1u);
  ASSERT_EQ(received.size(), 2u);
  EXPECT_EQ(::fcntl(received[0].get(), F_GETFD), FD_CLOEXEC);
  Connection(std::move(received[0]), "left").Write("x", Soon());
  Connection(std::move(received[1]), "right").Read(&byte, 1, Soon());
  EXPECT_EQ(byte, 'x');
  EXPECT_EQ(ReadWithDescriptors(remote, &byte, 1, &received, Soon()), 1u);
  EXPECT_EQ(received.size(), 2u);
}

TEST(Descriptors, DescriptorsOverTheLimitAreDropped) {
  auto [local, remote] = Connection::Pair();
  WriteWithDescriptors(local, "a", std::array{local.fd(), remote.fd()}, Soon());
  rlimit before = {};
  ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &before), 0);
  // Only one more descriptor is allowed.
  const rlimit tight = {static_cast<rlim_t>(Fd(::dup(0)).get()) + 1, before.rlim_max};
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &tight), 0);
  std::vector<Fd> received;
  char byte = 0;
  const size_t got = ReadWithDescriptors(remote, &byte, 1, &received, Soon());
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &before), 0);
  EXPECT_EQ(got, 1u);
  EXPECT_EQ(received.size(), 1u);
}

TEST(Descriptors, WaitsHaveADeadline) {
  auto [local, remote] = Connection::Pair();
  std::vector<Fd> received;
  char byte = 0;
  EXPECT_THROW(ReadWithDescriptors(remote, &byte, 1, &received, Deadline::After(0.02)), Error);
  while (local.TryWrite("xxxxxxxx", 8) > 0) continue;
  EXPECT_THROW(WriteWithDescriptors(local, "a", std::array{local.fd()}, Deadline::After(0.02)),
               Error);
}

TEST(Descriptors, EndOfFileIsReportedAndALostPeerIsUnavailable) {
  auto [local, remote] = Connection::Pair();
  local.Shutdown();
  std::vector<Fd> received;
  char byte = 0;
  EXPECT_EQ(ReadWithDescriptors(remote, &byte, 1, &received, Soon()), 0u);
  try {
    WriteWithDescriptors(remote, "a", std::array{local.fd()}, Soon());
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kUnavailable);
  }
}

TEST(Descriptors, TooManyAreRejected) {
  auto [local, remote] = Connection::Pair();
  const std::vector<int> many(kMaxDescriptors + 1, local.fd());
  EXPECT_THROW(WriteWithDescriptors(local, "a", many, Soon()), Error);
}

}  // namespace
}  // namespace hearth
