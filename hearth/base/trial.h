// Work that may crash or never end, because a library that is not ours reads what a stranger wrote:
// done in a child process first, so that only the child is lost.
#pragma once

#include <chrono>
#include <functional>
#include <mutex>
#include <string>

namespace hearth {

struct TrialEnd {
  bool survived = true;
  bool killed = false;  // from outside: the system does so when memory runs out
  std::string how;      // "signal 11 (Segmentation fault)", where it did not
};

// Runs `work` in a copy of this process (fork), with one thread and at most `cpu_seconds` of
// processor time; waits for its end. What `work` throws counts as survived: it will be thrown again
// where it matters. `during_fork` is held while the process is copied, so that the library's state
// is whole in the copy, and is free when `work` runs. The child dies with the calling thread,
// says nothing, leaves no core file and ignores the signals that ask the parent to end. Where the
// system gives no further process, or the child does nothing for `longest_pause` (it waits for a
// lock that another thread held when the process was copied, or for a disk that does not answer),
// the answer is that it survived: reading on goes before certainty. Any thread may call it.
TrialEnd RunTrial(std::mutex& during_fork, unsigned cpu_seconds, const std::function<void()>& work,
                  std::chrono::milliseconds longest_pause = std::chrono::seconds(30));

}  // namespace hearth
