// Deadline for test operations that normally finish at once; long enough for a busy machine.
#pragma once

#include "hearth/base/deadline.h"

namespace hearth {

inline Deadline Soon() { return Deadline::After(60); }

}  // namespace hearth
