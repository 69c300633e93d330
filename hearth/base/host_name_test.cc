#include "hearth/base/host_name.h"

#include <gtest/gtest.h>
#include <sys/utsname.h>

#include <string>
#include <vector>

#include "hearth/base/thread.h"

namespace hearth {
namespace {

TEST(HostNameTest, IsTheKernelsOnEveryThread) {
  utsname kernel{};
  ASSERT_EQ(::uname(&kernel), 0);
  EXPECT_NE(HostName(), "");
  std::vector<Thread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back("name", [&] {
      for (int call = 0; call < 1000; ++call) ASSERT_EQ(HostName(), kernel.nodename);
    });
  }
  for (Thread& thread : threads) thread.Join();
}

}  // namespace
}  // namespace hearth
