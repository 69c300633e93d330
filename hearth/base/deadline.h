#pragma once

#include <algorithm>
#include <chrono>
#include <limits>

namespace hearth {

// A point in time that limits a wait. Copyable, safe to share between threads.
class Deadline {
 public:
  using Clock = std::chrono::steady_clock;

  static Deadline After(double seconds) {
    return Deadline(Clock::now() + std::chrono::duration_cast<Clock::duration>(
                                       std::chrono::duration<double>(seconds)));
  }
  static Deadline Never() { return Deadline(Clock::time_point::max()); }

  static Deadline Earlier(Deadline a, Deadline b) { return a.at_ < b.at_ ? a : b; }

  bool expired() const { return at_ != Clock::time_point::max() && Clock::now() >= at_; }
  Clock::time_point at() const { return at_; }

  // Remaining seconds, never negative; infinity for Never().
  double remaining() const {
    if (at_ == Clock::time_point::max()) return std::numeric_limits<double>::infinity();
    return std::max(0.0, std::chrono::duration<double>(at_ - Clock::now()).count());
  }

  // Waits on `changed` until `over()` is true. Returns false if the deadline passes first.
  template <typename Condition, typename Lock, typename Over>
  bool Wait(Condition& changed, Lock& lock, const Over& over) const {
    if (at_ != Clock::time_point::max()) return changed.wait_until(lock, at_, over);
    changed.wait(lock, over);  // wait_until(max) overflows in some standard libraries
    return true;
  }

  // Timeout argument of poll(2): rounded up, -1 for Never().
  int poll_timeout_ms() const {
    if (at_ == Clock::time_point::max()) return -1;
    return static_cast<int>(std::min(remaining() * 1000.0 + 0.999, 1e9));
  }

 private:
  explicit Deadline(Clock::time_point at) : at_(at) {}
  Clock::time_point at_;
};

}  // namespace hearth
