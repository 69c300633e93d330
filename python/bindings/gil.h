// RAII for the GIL: released while a thread waits in the core, acquired to call Python.
//
// Like nanobind's gil_scoped_release and gil_scoped_acquire, but safe for daemon threads: a thread
// that requests the GIL during interpreter shutdown blocks until the process exits. Python would
// instead unwind the thread's stack through noexcept destructors, which calls std::terminate().
#pragma once

#include <nanobind/nanobind.h>
#include <unistd.h>

namespace hearth::bindings {

// Blocks a thread whose stack Python is unwinding, until the process exits.
[[noreturn]] inline void StayUntilTheEnd() {
  for (;;) ::pause();
}

// Calls `take`, which acquires the GIL; blocks forever if the interpreter is shutting down.
template <typename Take>
auto TakeGil(Take take) {
  try {
    return take();
  } catch (...) {  // Python is unwinding this thread's stack
    StayUntilTheEnd();
  }
}

// Returns true if this thread holds the GIL. The limited API lacks PyGILState_Check(). The
// alternative works per thread only since Python 3.12, which is the oldest version for which Hearth
// uses the limited API.
inline bool HasGil() {
#ifdef Py_LIMITED_API
  return PyThreadState_GetDict() != nullptr;
#else
  return PyGILState_Check() != 0;
#endif
}

// Releases the GIL during its lifetime.
class ReleasedGil {
 public:
  ReleasedGil() : state_(PyEval_SaveThread()) {}
  ~ReleasedGil() {
    TakeGil([this] { PyEval_RestoreThread(state_); });
  }
  ReleasedGil(const ReleasedGil&) = delete;
  ReleasedGil& operator=(const ReleasedGil&) = delete;

 private:
  PyThreadState* const state_;
};

// Holds the GIL during its lifetime. Any thread may use it.
class AcquiredGil {
 public:
  AcquiredGil() : state_(TakeGil(PyGILState_Ensure)) {}
  ~AcquiredGil() {
    // If this thread does not hold the GIL, Python is unwinding its stack, and another thread holds
    // the GIL.
    if (!HasGil()) StayUntilTheEnd();
    PyGILState_Release(state_);
  }
  AcquiredGil(const AcquiredGil&) = delete;
  AcquiredGil& operator=(const AcquiredGil&) = delete;

 private:
  const PyGILState_STATE state_;
};

// Call guard for .def(), for functions that wait and do not access Python objects.
using ReleaseGil = nanobind::call_guard<ReleasedGil>;

// Calls a waiting function without the GIL and returns its result.
template <typename Function>
auto WithoutGil(Function function) {
  const ReleasedGil released;
  return function();
}

}  // namespace hearth::bindings
