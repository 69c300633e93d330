#include "hearth/base/error.h"

#include <array>
#include <cerrno>
#include <cstring>
#include <new>

namespace hearth {
namespace {

constexpr std::array<std::pair<ErrorCode, std::string_view>, 10> kNames = {{
    {ErrorCode::kInvalidArgument, "invalid_argument"},
    {ErrorCode::kNotFound, "not_found"},
    {ErrorCode::kDataLoss, "data_loss"},
    {ErrorCode::kUnavailable, "unavailable"},
    {ErrorCode::kDeadlineExceeded, "deadline_exceeded"},
    {ErrorCode::kAborted, "aborted"},
    {ErrorCode::kPermissionDenied, "permission_denied"},
    {ErrorCode::kResourceExhausted, "resource_exhausted"},
    {ErrorCode::kUnimplemented, "unimplemented"},
    {ErrorCode::kInternal, "internal"},
}};

// Callers retry kUnavailable and kDeadlineExceeded only. Therefore EINVAL, EISDIR and the address
// errors are reported as invalid input, and an unlisted errno is reported as a bug.
ErrorCode CodeOfErrno(int error_number) {
  switch (error_number) {
    case ENOENT:
    case ENOTDIR:
      return ErrorCode::kNotFound;
    case EACCES:
    case EPERM:
    case EROFS:
      return ErrorCode::kPermissionDenied;
    case ENOSPC:
    case EDQUOT:
    case ENOMEM:
    case ENOBUFS:
    case EMFILE:
    case ENFILE:
    case EFBIG:
      return ErrorCode::kResourceExhausted;
    case ECONNABORTED:
    case ECONNREFUSED:
    case ECONNRESET:
    case EPIPE:
    case ENOTCONN:
    case EHOSTDOWN:
    case EHOSTUNREACH:
    case ENETDOWN:
    case ENETRESET:
    case ENETUNREACH:
      return ErrorCode::kUnavailable;
    case ETIMEDOUT:
      return ErrorCode::kDeadlineExceeded;
    case EINVAL:
    case EISDIR:
    case EADDRINUSE:
    case EADDRNOTAVAIL:
      return ErrorCode::kInvalidArgument;
    default:
      return ErrorCode::kInternal;
  }
}

// Returns a copy of `cause`, because the exception is destroyed when its catch block ends. If it is
// an Error, the copy shares the Error's own cause.
std::shared_ptr<const Error> CopyOf(const std::exception& cause) {
  const auto* error = dynamic_cast<const Error*>(&cause);
  if (error != nullptr) return std::make_shared<const Error>(*error);
  // std::bad_alloc is the only standard exception that a retry or another setting can avoid.
  const bool memory = dynamic_cast<const std::bad_alloc*>(&cause) != nullptr;
  const auto code = memory ? ErrorCode::kResourceExhausted : ErrorCode::kInternal;
  return std::make_shared<const Error>(code, cause.what());
}

}  // namespace

Error::Error(ErrorCode code, std::string message, const std::exception& cause)
    : code_(code), message_(std::move(message) + ": " + cause.what()), cause_(CopyOf(cause)) {}

std::string_view ErrorCodeName(ErrorCode code) {
  for (const auto& [known, name] : kNames) {
    if (known == code) return name;
  }
  return "internal";
}

ErrorCode ErrorCodeFromName(std::string_view name) {
  for (const auto& [code, known] : kNames) {
    if (known == name) return code;
  }
  return ErrorCode::kInternal;
}

void ThrowErrno(int error_number, std::string_view what) {
  throw Error(CodeOfErrno(error_number), fmt::format("{}: {}", what, std::strerror(error_number)));
}

}  // namespace hearth
