// Ties a process's lifetime to that of its parent.
#pragma once

#include <sys/types.h>

namespace hearth {

// From now on the kernel kills this process (SIGKILL) when the *thread* that started it ends, so
// that thread must live as long as its process. Throws kUnavailable if `parent` is no longer the
// parent: it died before this call.
void DieWithParent(pid_t parent);

}  // namespace hearth
