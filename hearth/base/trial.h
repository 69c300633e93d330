// Runs work that may crash or hang, such as a third-party library that reads untrusted input, in a
// child process first, so that only the child is lost.
#pragma once

#include <chrono>
#include <functional>
#include <mutex>
#include <string>

namespace hearth {

struct TrialEnd {
  bool survived = true;
  bool killed = false;  // by another process; the system does so when memory runs out
  std::string how;      // "signal 11 (Segmentation fault)", if not survived
};

// Runs `work` in a copy of this process (fork), with one thread and at most `cpu_seconds` of
// processor time, and waits for its end. An exception of `work` counts as survived: the caller will
// get it again. `during_fork` is held during the fork, so that the library's state is consistent in
// the copy, and is free when `work` runs. The child dies with the calling thread, prints nothing,
// leaves no core file and ignores the termination signals meant for the parent. If no process can
// be created, or the child makes no progress for `longest_pause` (it waits for a lock that another
// thread held during the fork, or for a disk that does not respond), the result is survived:
// availability goes before certainty. Any thread may call it.
TrialEnd RunTrial(std::mutex& during_fork, unsigned cpu_seconds, const std::function<void()>& work,
                  std::chrono::milliseconds longest_pause = std::chrono::seconds(30));

}  // namespace hearth
