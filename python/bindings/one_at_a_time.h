#pragma once

#include <mutex>
#include <utility>

namespace hearth::bindings {

// A T that Python's threads use one at a time. Call With() without the GIL, because With() waits
// for the mutex.
template <typename T>
class OneAtATime {
 public:
  template <typename... Args>
  explicit OneAtATime(Args&&... args) : value_(std::forward<Args>(args)...) {}
  OneAtATime(OneAtATime&&) = delete;

  template <typename Call>
  auto With(Call call) {
    const std::lock_guard lock(mutex_);
    return call(value_);
  }

 private:
  std::mutex mutex_;
  T value_;
};

}  // namespace hearth::bindings
