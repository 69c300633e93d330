#include "hearth/base/on_signal.h"

#include <gtest/gtest.h>

#include <stdexcept>
#include <thread>

namespace hearth {
namespace {

int outer_calls = 0, inner_calls = 0;

TEST(OnSignalTest, TheInnermostHookOfTheThreadRuns) {
  OnSignal::Run();  // without a hook, Run() does nothing
  const OnSignal outer([] { ++outer_calls; });
  {
    const OnSignal inner([] { ++inner_calls; });
    OnSignal::Run();
  }
  EXPECT_EQ(inner_calls, 1);
  EXPECT_EQ(outer_calls, 0);
  OnSignal::Run();
  EXPECT_EQ(outer_calls, 1);
  std::thread([] { OnSignal::Run(); }).join();
  EXPECT_EQ(outer_calls, 1) << "another thread has no hook";
}

// Python's KeyboardInterrupt ends a wait by such an exception.
TEST(OnSignalTest, AHookMayThrow) {
  const OnSignal hook([] { throw std::runtime_error("interrupted"); });
  EXPECT_THROW(OnSignal::Run(), std::runtime_error);
}

}  // namespace
}  // namespace hearth
