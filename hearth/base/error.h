#pragma once

#include <fmt/format.h>

#include <exception>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

namespace hearth {

enum class ErrorCode {
  kInvalidArgument,    // the caller's or the user's input is wrong; retrying will not help
  kNotFound,           // a named file, column, blob or member does not exist
  kDataLoss,           // stored or received bytes are damaged
  kUnavailable,        // a peer or a process is gone
  kDeadlineExceeded,   // a wait took longer than its deadline
  kAborted,            // another rank failed first; the message is from that rank
  kPermissionDenied,   // authentication failed, or the file system denied access
  kResourceExhausted,  // memory, disk or another limit
  kUnimplemented,      // planned, but not implemented
  kInternal,           // a bug in Hearth
};

std::string_view ErrorCodeName(ErrorCode code);
// Inverse of ErrorCodeName(); kInternal for an unknown name.
ErrorCode ErrorCodeFromName(std::string_view name);

// The error type of the core. Its message is one sentence: what failed, with which values and
// where, and what to do. python/bindings/errors.cc maps codes to Python exception classes.
class Error : public std::exception {
 public:
  Error(ErrorCode code, std::string message) : code_(code), message_(std::move(message)) {}
  // The message becomes "message: cause", on one line; cause() is a copy of `cause`.
  Error(ErrorCode code, std::string message, const std::exception& cause);

  ErrorCode code() const { return code_; }
  // Includes the messages of all causes.
  const std::string& message() const { return message_; }
  // The error that caused this one, or null. A cause of another exception type is converted to an
  // Error.
  const Error* cause() const { return cause_.get(); }
  const char* what() const noexcept override { return message_.c_str(); }

 private:
  ErrorCode code_;
  std::string message_;
  std::shared_ptr<const Error> cause_;
};

template <typename... Args>
[[noreturn]] void Throw(ErrorCode code, fmt::format_string<Args...> format, Args&&... args) {
  throw Error(code, fmt::format(format, std::forward<Args>(args)...));
}

template <typename... Args>
void Require(bool condition, ErrorCode code, fmt::format_string<Args...> format, Args&&... args) {
  if (!condition) throw Error(code, fmt::format(format, std::forward<Args>(args)...));
}

// Throws an Error with `what`, the text of errno and the matching code (ENOENT: kNotFound, ...).
[[noreturn]] void ThrowErrno(int error_number, std::string_view what);

}  // namespace hearth
