// The last words of a process that crashes: which signal, in which iteration and layer.
#pragma once

#include <string>

#include "hearth/trainer/job.h"

namespace hearth::trainer {

// From now on a fatal signal (SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT) writes an "error" event to
// the control channel `fd` and then ends the process as it would have without. Once per process.
void ReportCrashes(int fd, const Job& job);

// The iteration that a report names: the last that a device has begun. Any thread.
void SetIterationForCrashes(int64_t iteration) noexcept;

}  // namespace hearth::trainer
