// Python's lock, given back while a thread waits in the core and taken where the core calls Python.
//
// As nanobind's gil_scoped_release and gil_scoped_acquire, also for daemon threads: those that want
// the lock while the interpreter ends never get it, and the process goes on ending without them.
// Python would end such a thread by unwinding its stack, through destructors that may not throw:
// std::terminate().
#pragma once

#include <nanobind/nanobind.h>
#include <unistd.h>

namespace hearth::bindings {

// What a thread does that Python unwinds, as the process goes on ending without it.
[[noreturn]] inline void StayUntilTheEnd() {
  for (;;) ::pause();
}

// Calls `take`, which takes the lock; where the interpreter is ending, stays here until it has.
template <typename Take>
auto TakeGil(Take take) {
  try {
    return take();
  } catch (...) {  // Python unwinds this thread
    StayUntilTheEnd();
  }
}

// Whether this thread has the lock. The limited API has no PyGILState_Check(); the other function
// looks at this thread alone since 3.12, below which that API is not used.
inline bool HasGil() {
#ifdef Py_LIMITED_API
  return PyThreadState_GetDict() != nullptr;
#else
  return PyGILState_Check() != 0;
#endif
}

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

class AcquiredGil {
 public:
  AcquiredGil() : state_(TakeGil(PyGILState_Ensure)) {}
  ~AcquiredGil() {
    // Python unwinds this thread out of the Python code that it called: the lock is another's.
    if (!HasGil()) StayUntilTheEnd();
    PyGILState_Release(state_);
  }
  AcquiredGil(const AcquiredGil&) = delete;
  AcquiredGil& operator=(const AcquiredGil&) = delete;

 private:
  const PyGILState_STATE state_;
};

// For .def() of a function that waits and touches no Python object.
using ReleaseGil = nanobind::call_guard<ReleasedGil>;

// What a function that waits returns; it runs without the lock.
template <typename Function>
auto WithoutGil(Function function) {
  const ReleasedGil released;
  return function();
}

}  // namespace hearth::bindings
