// The one error type of the core. Its message is one sentence: what failed, with which values and
// where, and what to do. Python maps codes to exception classes in python/bindings/errors.cc.
#pragma once

#include <fmt/format.h>

#include <exception>
#include <string>
#include <string_view>
#include <utility>

namespace hearth {

enum class ErrorCode {
  kInvalidArgument,    // the caller's or the user's input is wrong; trying again will not help
  kNotFound,           // a file, column, blob or member that was named does not exist
  kDataLoss,           // stored or received bytes are damaged
  kUnavailable,        // a peer or a process went away
  kDeadlineExceeded,   // a wait took longer than its deadline
  kAborted,            // another rank failed first; the message is that rank's
  kPermissionDenied,   // authentication failed, or the file system said no
  kResourceExhausted,  // memory, disk or another limit
  kUnimplemented,      // known, but not built yet
  kInternal,           // a bug in Hearth
};

std::string_view ErrorCodeName(ErrorCode code);
// The inverse; an unknown name gives kInternal.
ErrorCode ErrorCodeFromName(std::string_view name);

class Error : public std::exception {
 public:
  Error(ErrorCode code, std::string message) : code_(code), message_(std::move(message)) {}
  // `cause` is appended to the sentence as "...: cause".
  Error(ErrorCode code, std::string message, const std::exception& cause)
      : code_(code), message_(std::move(message) + ": " + cause.what()) {}

  ErrorCode code() const { return code_; }
  const std::string& message() const { return message_; }
  const char* what() const noexcept override { return message_.c_str(); }

 private:
  ErrorCode code_;
  std::string message_;
};

template <typename... Args>
[[noreturn]] void Throw(ErrorCode code, fmt::format_string<Args...> format, Args&&... args) {
  throw Error(code, fmt::format(format, std::forward<Args>(args)...));
}

template <typename... Args>
void Require(bool condition, ErrorCode code, fmt::format_string<Args...> format, Args&&... args) {
  if (!condition) throw Error(code, fmt::format(format, std::forward<Args>(args)...));
}

// Throws with `what` and the text of errno, choosing the code that fits (ENOENT: kNotFound, ...).
[[noreturn]] void ThrowErrno(int error_number, std::string_view what);

}  // namespace hearth
