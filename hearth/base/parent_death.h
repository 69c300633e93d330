// A process that must not outlive the one that started it.
#pragma once

#include <sys/types.h>

namespace hearth {

// From now on the kernel kills this process (SIGKILL) when the *thread* that started it ends, so
// the starter must be a thread that lives as long as its process. Throws kUnavailable when `parent`
// is no longer our parent: it died before this call.
void DieWithParent(pid_t parent);

}  // namespace hearth
