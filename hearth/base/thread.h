// A joinable thread that hands its exception to whoever joins it.
#pragma once

#include <exception>
#include <functional>
#include <memory>
#include <string>
#include <thread>

namespace hearth {

class Thread {
 public:
  Thread() = default;
  // `name` (up to 15 characters) is what ps and debuggers show.
  Thread(std::string name, std::function<void()> body);
  Thread(Thread&&) = default;
  // Swaps, so a thread that was still running is joined by the other one's destructor.
  Thread& operator=(Thread&& other) noexcept {
    state_.swap(other.state_);
    thread_.swap(other.thread_);
    return *this;
  }
  // Joins; an exception that nobody asked for is logged. The owner must have told the body to end.
  ~Thread();

  bool joinable() const { return thread_.joinable(); }
  // Waits for the end, then throws what the body threw, once. No deadline: the body must have one.
  void Join();

 private:
  struct State {
    std::string name;
    std::exception_ptr error;
  };
  // On the heap, so that moving the Thread does not move what the body writes.
  std::unique_ptr<State> state_;
  std::thread thread_;
};

}  // namespace hearth
