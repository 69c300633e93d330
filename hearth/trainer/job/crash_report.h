// Reports a crash of this process: the signal, the iteration and the layer.
#pragma once

#include <string>

#include "hearth/trainer/job/job.h"

namespace hearth::trainer {

// Installs handlers for fatal signals (SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT), which write an
// "error" event to the control channel `fd` before the signal ends the process as usual. Called
// once per process.
void ReportCrashes(int fd, const Job& job);

// Sets the iteration that crash reports name: the last one that a device has begun. Any thread may
// call it.
void SetIterationForCrashes(int64_t iteration) noexcept;

}  // namespace hearth::trainer
