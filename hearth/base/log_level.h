// Which log records are dropped.
#pragma once

#include "hearth/base/log.h"

namespace hearth::log {

// Records below `level` are dropped from now on, on all threads; all are logged at first.
void SetLeastLevel(Level level);

}  // namespace hearth::log
