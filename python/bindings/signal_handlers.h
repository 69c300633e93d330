// Python's handlers of signals, for OnSignal while a thread waits in the core.
#pragma once

#include <nanobind/nanobind.h>
#include <unistd.h>

#include "gil.h"
#include "hearth/base/on_signal.h"

namespace hearth::bindings {

// Python runs the handlers of signals in its main thread, and a handler may raise.
inline void RunSignalHandlers() {
  if (::gettid() != ::getpid()) return;
  const AcquiredGil gil;
  if (PyErr_CheckSignals() != 0) throw nanobind::python_error();
}

// What a function that waits returns; it runs without the lock, and a handler may end it.
template <typename Function>
auto WaitWithHandlers(Function function) {
  const ReleasedGil released;
  const OnSignal handlers(RunSignalHandlers);
  return function();
}

}  // namespace hearth::bindings
