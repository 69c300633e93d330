// Reports a crash of this process: the signal, the iteration and the layer.
#pragma once

#include <string>

#include "hearth/trainer/job/job.h"

namespace hearth::trainer {

// Installs handlers by which a fatal signal (SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT) writes an
// "error" event to the control channel `fd` before it ends the process as usual. Once per process.
void ReportCrashes(int fd, const Job& job);

// Sets the iteration that reports name: the last that a device has begun. Any thread.
void SetIterationForCrashes(int64_t iteration) noexcept;

}  // namespace hearth::trainer
