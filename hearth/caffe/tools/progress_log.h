#pragma once

#include <chrono>
#include <cstdint>

namespace hearth::caffe {

// Logs a tool's progress: every 1000 items, like Caffe's tools, and at least every two seconds. For
// one thread.
class ProgressLog {
 public:
  // Reports the number of completed items. May be called as often as convenient.
  void Done(int64_t items);
  // Logs the final number of items, unless it was already logged.
  void Finish(int64_t items);

 private:
  using Clock = std::chrono::steady_clock;

  void Say(int64_t items);

  int64_t said_ = 0;
  Clock::time_point last_ = Clock::now();
};

}  // namespace hearth::caffe
