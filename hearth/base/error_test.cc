#include "hearth/base/error.h"

#include <gtest/gtest.h>

#include <cerrno>
#include <new>
#include <stdexcept>

namespace hearth {
namespace {

ErrorCode CodeThrownFor(int error_number) {
  try {
    ThrowErrno(error_number, "cannot open /a/b");
  } catch (const Error& error) {
    return error.code();
  }
}

TEST(Error, EveryCodeNameRoundTrips) {
  for (int i = 0; i <= static_cast<int>(ErrorCode::kInternal); ++i) {
    const auto code = static_cast<ErrorCode>(i);
    EXPECT_EQ(ErrorCodeFromName(ErrorCodeName(code)), code);
  }
}

TEST(Error, UnknownNameIsInternal) {
  EXPECT_EQ(ErrorCodeFromName("no such code"), ErrorCode::kInternal);
}

TEST(Error, ErrnoSelectsTheCode) {
  EXPECT_EQ(CodeThrownFor(ENOENT), ErrorCode::kNotFound);
  EXPECT_EQ(CodeThrownFor(EACCES), ErrorCode::kPermissionDenied);
  EXPECT_EQ(CodeThrownFor(ENOSPC), ErrorCode::kResourceExhausted);
  EXPECT_EQ(CodeThrownFor(ECONNREFUSED), ErrorCode::kUnavailable);
  EXPECT_EQ(CodeThrownFor(ETIMEDOUT), ErrorCode::kDeadlineExceeded);
  EXPECT_EQ(CodeThrownFor(EINVAL), ErrorCode::kInvalidArgument);
  EXPECT_EQ(CodeThrownFor(EIO), ErrorCode::kInternal);
}

TEST(Error, MessageContainsTheValuesAndTheCause) {
  const Error cause(ErrorCode::kUnavailable, "peer 10.0.0.2:80 closed");
  const Error outer(ErrorCode::kAborted, "step 7 failed", cause);
  EXPECT_STREQ(outer.what(), "step 7 failed: peer 10.0.0.2:80 closed");
}

TEST(Error, KeepsTheChainOfCauses) {
  const Error outer(
      ErrorCode::kAborted, "step 7 failed",
      Error(ErrorCode::kUnavailable, "no answer", std::runtime_error("10.0.0.2:80 closed")));
  const Error copy(outer);
  ASSERT_NE(copy.cause(), nullptr);
  EXPECT_EQ(copy.cause()->code(), ErrorCode::kUnavailable);
  EXPECT_EQ(copy.cause()->message(), "no answer: 10.0.0.2:80 closed");
  ASSERT_NE(copy.cause()->cause(), nullptr);
  EXPECT_EQ(copy.cause()->cause()->code(), ErrorCode::kInternal);
  EXPECT_EQ(copy.cause()->cause()->message(), "10.0.0.2:80 closed");
  EXPECT_EQ(copy.cause()->cause()->cause(), nullptr);
}

TEST(Error, OutOfMemoryAsACauseHasItsCode) {
  const Error error(ErrorCode::kInternal, "reading", std::bad_alloc());
  ASSERT_NE(error.cause(), nullptr);
  EXPECT_EQ(error.cause()->code(), ErrorCode::kResourceExhausted);
}

TEST(Error, RequireThrowsOnlyWhenTheConditionFails) {
  EXPECT_NO_THROW(Require(true, ErrorCode::kInternal, "{}", 1));
  try {
    Require(false, ErrorCode::kInvalidArgument, "batch_size is {}", -1);
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.message(), "batch_size is -1");
    EXPECT_EQ(error.code(), ErrorCode::kInvalidArgument);
  }
}

}  // namespace
}  // namespace hearth
