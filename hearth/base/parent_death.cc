#include "hearth/base/parent_death.h"

#include <signal.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <cerrno>

#include "hearth/base/error.h"

namespace hearth {

void DieWithParent(pid_t parent) {
  if (::prctl(PR_SET_PDEATHSIG, SIGKILL) != 0) {
    ThrowErrno(errno, "cannot set the parent-death signal");
  }
  // Checks for a parent that died before prctl(), because the kernel then sends no signal.
  const pid_t now = ::getppid();
  Require(now == parent, ErrorCode::kUnavailable,
          "process {}, which started this process, has ended (the parent is now process {})",
          parent, now);
}

}  // namespace hearth
