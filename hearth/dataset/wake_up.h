// Wakes threads that wait for a condition under a mutex. Unlike a condition variable it also runs
// what OnSignal has in force for a waiting thread, so that Python's signal handlers may end a wait.
#pragma once

#include <functional>
#include <mutex>
#include <set>

#include "hearth/base/deadline.h"

namespace hearth::dataset {

// Thread-safe; all calls hold the one mutex that protects what the conditions look at.
class WakeUp {
 public:
  // Returns whether `ready()` is true; false at the deadline. Throws what `ready` or a signal's
  // handler throws, then with the mutex locked again.
  bool Wait(std::unique_lock<std::mutex>& lock, Deadline deadline,
            const std::function<bool()>& ready);
  void NotifyAll();

 private:
  std::set<int> waiting_;  // an eventfd of each waiting thread
};

}  // namespace hearth::dataset
