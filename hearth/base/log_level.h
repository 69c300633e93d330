// Minimum level of log records.
#pragma once

#include "hearth/base/log.h"

namespace hearth::log {

// Records below `level` are dropped from now on, on all threads. Initially none are.
void SetLeastLevel(Level level);

}  // namespace hearth::log
