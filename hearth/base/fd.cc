#include "hearth/base/fd.h"

#include <fcntl.h>

#include <cerrno>

#include "hearth/base/error.h"

namespace hearth {

Fd Duplicate(int fd) {
  Fd copy(::fcntl(fd, F_DUPFD_CLOEXEC, 0));
  if (!copy.valid()) ThrowErrno(errno, fmt::format("cannot duplicate descriptor {}", fd));
  return copy;
}

}  // namespace hearth
