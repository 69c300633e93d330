#pragma once

#include <exception>
#include <functional>
#include <memory>
#include <string>
#include <thread>

namespace hearth {

// A joinable thread that passes its exception to Join.
class Thread {
 public:
  Thread() = default;
  // `name` (up to 15 characters) is shown by ps and debuggers.
  Thread(std::string name, std::function<void()> body);
  Thread(Thread&&) = default;
  // Swaps the threads, so the destructor of `other` joins the previous thread of this object.
  Thread& operator=(Thread&& other) noexcept {
    state_.swap(other.state_);
    thread_.swap(other.thread_);
    return *this;
  }
  // Joins; logs an exception that Join() has not rethrown. The owner must first signal the body to
  // end.
  ~Thread();

  bool joinable() const { return thread_.joinable(); }
  // Waits for the thread to end, then rethrows the body's exception, once. Has no deadline: the
  // body must have one.
  void Join();

 private:
  // The name of the thread, and the exception that ended it.
  struct State {
    std::string name;
    std::exception_ptr error;
  };
  // On the heap, so that moving the Thread does not move the body's result.
  std::unique_ptr<State> state_;
  std::thread thread_;
};

}  // namespace hearth
