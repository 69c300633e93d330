#include "hearth/base/error.h"

#include <array>
#include <cerrno>
#include <cstring>

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

}  // namespace

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
