#pragma once

#include <chrono>
#include <cstdint>

namespace hearth::caffe {

// Logs a tool's progress: after every thousand items, as Caffe's tools do, and at least every two
// seconds. One thread.
class ProgressLog {
 public:
  // Call it as often as convenient, with the number of items completed.
  void Done(int64_t items);
  // Logs the last line unless it was logged already.
  void Finish(int64_t items);

 private:
  using Clock = std::chrono::steady_clock;

  void Say(int64_t items);

  int64_t said_ = 0;
  Clock::time_point last_ = Clock::now();
};

}  // namespace hearth::caffe
