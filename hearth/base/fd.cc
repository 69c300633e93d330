#include "hearth/base/fd.h"

#include <fcntl.h>

#include <cerrno>

#include "hearth/base/error.h"

namespace hearth {

Fd Duplicate(int fd) {
  // F_DUPFD_CLOEXEC duplicates and sets close-on-exec in one call. Between two calls, another
  // thread could start a child that inherits the copy.
  Fd copy(::fcntl(fd, F_DUPFD_CLOEXEC, 0));
  if (!copy.valid()) ThrowErrno(errno, fmt::format("cannot duplicate descriptor {}", fd));
  return copy;
}

}  // namespace hearth
