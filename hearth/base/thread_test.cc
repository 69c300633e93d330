#include "hearth/base/thread.h"

#include <gtest/gtest.h>

#include <atomic>
#include <string>

#include "hearth/base/error.h"
#include "hearth/base/log.h"

namespace hearth {
namespace {

TEST(Thread, JoinRethrowsTheBodysErrorOnce) {
  Thread thread("failing", [] { Throw(ErrorCode::kDataLoss, "row {} is damaged", 3); });
  try {
    thread.Join();
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kDataLoss);
    EXPECT_EQ(error.message(), "row 3 is damaged");
  }
  EXPECT_NO_THROW(thread.Join());
}

TEST(Thread, DestructorWaitsForTheBody) {
  std::atomic<bool> done = false;
  {
    Thread thread("worker", [&] { done = true; });
  }
  EXPECT_TRUE(done);
}

TEST(Thread, AnUncaughtErrorIsLogged) {
  std::string text;
  log::SetSink([&](const log::Record& record) { text = record.text; });
  {
    Thread thread("a name longer than fifteen", [] { throw std::runtime_error("lost"); });
  }
  log::SetSink({});
  EXPECT_NE(text.find("a name longer than fifteen"), std::string::npos);
  EXPECT_NE(text.find("lost"), std::string::npos);
}

TEST(Thread, MovedThreadIsJoinedByItsNewOwner) {
  Thread owner;
  EXPECT_FALSE(owner.joinable());
  Thread thread("moved", [] { throw std::runtime_error("from the body"); });
  owner = std::move(thread);
  EXPECT_THROW(owner.Join(), std::runtime_error);
}

}  // namespace
}  // namespace hearth
