#include "hearth/base/fd.h"

#include <fcntl.h>

#include <cerrno>

#include "hearth/base/error.h"

namespace hearth {

Fd Duplicate(int fd) {
  // In one call: a child that another thread starts between dup() and a second call would inherit
  // the copy.
  Fd copy(::fcntl(fd, F_DUPFD_CLOEXEC, 0));
  if (!copy.valid()) ThrowErrno(errno, fmt::format("cannot duplicate descriptor {}", fd));
  return copy;
}

}  // namespace hearth
