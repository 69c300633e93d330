#include "hearth/base/write_all.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <unistd.h>

#include <string>
#include <thread>

#include "hearth/base/fd.h"
#include "hearth/base/testing/error_testing.h"

namespace hearth {
namespace {

TEST(WriteAll, NamesTheFileOfAFullDisk) {
  const Fd full(::open("/dev/full", O_WRONLY | O_CLOEXEC));
  const Error error = Thrown([&] { WriteAll(full.get(), "rows", "the spool file"); });
  EXPECT_EQ(error.code(), ErrorCode::kResourceExhausted);
  EXPECT_THAT(error.message(), testing::StartsWith("cannot write the spool file"));
}

TEST(WriteAll, WritesEveryByteToAPipeThatTakesThemInParts) {
  int ends[2];
  ASSERT_EQ(::pipe2(ends, O_CLOEXEC), 0);
  const Fd reader(ends[0]);
  Fd writer(ends[1]);
  const std::string sent(1 << 20, 'x');  // more than the capacity of a pipe
  std::string received;
  std::thread read([&] {
    char buffer[1000];
    while (const ssize_t count = ::read(reader.get(), buffer, sizeof buffer)) {
      received.append(buffer, static_cast<size_t>(count));
    }
  });
  WriteAll(writer.get(), sent, "a pipe");
  writer.Reset();
  read.join();
  EXPECT_EQ(received, sent);
}

}  // namespace
}  // namespace hearth
