// Python's lock given back for as long as a thread waits in the core.
#pragma once

#include <Python.h>
#include <unistd.h>

namespace hearth::bindings {

// As nanobind::gil_scoped_release, also for daemon threads: those that want the lock while the
// interpreter ends never get it, and the process goes on ending without them. Python would end such
// a thread by unwinding its stack, through destructors that may not throw: std::terminate().
class ReleasedGil {
 public:
  ReleasedGil() : state_(PyEval_SaveThread()) {}
  ~ReleasedGil() {
    try {
      PyEval_RestoreThread(state_);
    } catch (...) {
      for (;;) ::pause();
    }
  }
  ReleasedGil(const ReleasedGil&) = delete;
  ReleasedGil& operator=(const ReleasedGil&) = delete;

 private:
  PyThreadState* const state_;
};

}  // namespace hearth::bindings
