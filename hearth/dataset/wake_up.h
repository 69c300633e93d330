// Wakes threads that wait for a condition under a mutex. Unlike a condition variable it also runs
// the handler of OnSignal in a waiting thread, so that Python's signal handlers can end a wait.
#pragma once

#include <functional>
#include <mutex>
#include <set>

#include "hearth/base/deadline.h"

namespace hearth::dataset {

// Replaces a condition variable. Thread-safe. Callers of both functions must have locked the mutex
// that guards the condition.
class WakeUp {
 public:
  // Returns true once `ready()` is true, false at the deadline. Rethrows exceptions of `ready` and
  // of a signal handler. The mutex is locked again in every case.
  bool Wait(std::unique_lock<std::mutex>& lock, Deadline deadline,
            const std::function<bool()>& ready);
  void NotifyAll();

 private:
  std::set<int> waiting_;  // one eventfd per waiting thread
};

}  // namespace hearth::dataset
