// Minimum level of log records.
#pragma once

#include "hearth/base/log.h"

namespace hearth::log {

// Drops records below `level` from now on, on all threads. By default none are dropped.
void SetLeastLevel(Level level);

}  // namespace hearth::log
