#include "hearth/base/shared_memory.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "hearth/base/error.h"

namespace hearth {
namespace {

TEST(SharedMemory, TwoMappingsOfOneDescriptorShareTheBytes) {
  const Fd fd = CreateSharedMemory("hearth-test", RoundUpToPages(100));
  const Mapping a(fd.get(), 0, 100);
  const Mapping b(fd.get(), 0, 100, Mapping::Access::kRead);
  std::strcpy(reinterpret_cast<char*>(a.data()), "hello");
  EXPECT_STREQ(reinterpret_cast<const char*>(b.data()), "hello");
}

TEST(SharedMemory, AnotherProcessSharesTheMemory) {
  const Fd fd = CreateSharedMemory("hearth-test", RoundUpToPages(1));
  const Mapping mapping(fd.get(), 0, 1);
  const pid_t child = ::fork();
  if (child == 0) {
    mapping.data()[0] = std::byte{42};
    ::_exit(0);
  }
  ASSERT_EQ(::waitpid(child, nullptr, 0), child);
  EXPECT_EQ(mapping.data()[0], std::byte{42});
}

TEST(SharedMemory, SizeCannotChangeUnderAMapping) {
  const Fd fd = CreateSharedMemory("hearth-test", RoundUpToPages(1));
  EXPECT_EQ(::ftruncate(fd.get(), 0), -1);
  EXPECT_EQ(errno, EPERM);
}

TEST(SharedMemory, MappingBeyondTheEndIsRejected) {
  const size_t page = RoundUpToPages(1);
  const Fd fd = CreateSharedMemory("hearth-test", page);
  try {
    const Mapping mapping(fd.get(), 0, page + 1);
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kInvalidArgument);
    EXPECT_NE(error.message().find(std::to_string(page + 1)), std::string::npos);
  }
  EXPECT_THROW(Mapping(fd.get(), 2 * page, 1), Error);
}

TEST(SharedMemory, MoveTransfersTheMapping) {
  const Fd fd = CreateSharedMemory("hearth-test", RoundUpToPages(1));
  Mapping a(fd.get(), 0, 1);
  const Mapping b = std::move(a);
  EXPECT_FALSE(a.valid());  // NOLINT(bugprone-use-after-move)
  EXPECT_TRUE(b.valid());
}

}  // namespace
}  // namespace hearth
