// The deadline of tests for what comes at once, also on a machine that is busy.
#pragma once

#include "hearth/base/deadline.h"

namespace hearth {

inline Deadline Soon() { return Deadline::After(60); }

}  // namespace hearth
