// What the environment variable HEARTH_TRANSPORT says of how ranks communicate.
#pragma once

#include "hearth/collective/group.h"

namespace hearth::collective {

// The options with the variable's choice: "auto" or nothing (shared memory within a host, tcp
// between hosts), "shm" (all ranks must share memory), "tcp" (also within a host). Throws
// kInvalidArgument for another value.
GroupOptions WithChosenTransport(GroupOptions options);

}  // namespace hearth::collective
