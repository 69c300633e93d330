// Runs Python's signal handlers through OnSignal while a thread waits in the core.
#pragma once

#include <nanobind/nanobind.h>
#include <unistd.h>

#include "gil.h"
#include "hearth/base/on_signal.h"

namespace hearth::bindings {

// Runs pending handlers if this is the main thread, because Python runs them only there. A handler
// may raise.
inline void RunSignalHandlers() {
  if (::gettid() != ::getpid()) return;
  const AcquiredGil gil;
  if (PyErr_CheckSignals() != 0) throw nanobind::python_error();
}

// Calls a waiting function without the GIL and returns its result; a signal handler may end the
// wait.
template <typename Function>
auto WaitWithHandlers(Function function) {
  const ReleasedGil released;
  const OnSignal handlers(RunSignalHandlers);
  return function();
}

}  // namespace hearth::bindings
