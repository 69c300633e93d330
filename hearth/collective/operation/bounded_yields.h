// Lets a waiting rank yield its core, if ranks share cores and as long as yields are cheap.
#pragma once

#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>

namespace hearth::collective {

// Decides whether a waiting rank yields its core or sleeps. On Linux 6.6 and later a thread that
// yields runs again after the other threads of its core: within microseconds if those threads are
// waiting ranks too, after milliseconds if one of them computes (decision 050). After a long yield,
// the next waits therefore sleep at once: few waits if long yields are rare (a peer was late once),
// up to kMaxSleepingWaits if they recur.
//
// Belongs to one rank and is used by one thread.
class BoundedYields {
 public:
  using Clock = std::chrono::steady_clock;

  // Number of waits that sleep after a long yield. It quadruples with each further long yield,
  // until kShortYields in a row were short.
  static constexpr int kFirstSleepingWaits = 16;
  static constexpr int kMaxSleepingWaits = 16384;
  static constexpr int kShortYields = 200;
  // Number of yields per wait before it sleeps; they take 10 to 30 us if no other thread is ready.
  static constexpr int kPerWait = 50;

  // `ranks`: number of ranks on this host.
  explicit BoundedYields(int ranks, Clock::duration long_yield = std::chrono::microseconds(100))
      : shares_core_(ranks > Cores()), long_yield_(long_yield) {}

  // For tests: sets the duration above which a yield counts as long.
  void set_long_yield(Clock::duration long_yield) { long_yield_ = long_yield; }

  // Returns true if ranks share cores, so that spinning could take the core from the awaited rank.
  bool shares_core() const { return shares_core_; }

  // Yields once. Returns false, without a yield, if the caller should sleep instead.
  bool Yield() {
    if (sleeping_waits_ > 0) {
      --sleeping_waits_;
      return false;
    }
    const auto begin = Clock::now();
    ::sched_yield();
    if (Clock::now() - begin > long_yield_) {
      sleeping_waits_ = next_sleeping_waits_;
      next_sleeping_waits_ = std::min(4 * next_sleeping_waits_, kMaxSleepingWaits);
      short_yields_ = 0;
    } else if (++short_yields_ == kShortYields) {
      next_sleeping_waits_ = kFirstSleepingWaits;
      short_yields_ = 0;
    }
    return true;
  }

 private:
  // Cores that this process may use; std::thread::hardware_concurrency() may count all cores of the
  // machine.
  static int Cores() {
    cpu_set_t cores;
    const bool fits = ::sched_getaffinity(::getpid(), sizeof(cores), &cores) == 0;
    return fits ? CPU_COUNT(&cores) : CPU_SETSIZE;
  }

  const bool shares_core_;
  Clock::duration long_yield_;
  int sleeping_waits_ = 0;
  int next_sleeping_waits_ = kFirstSleepingWaits;
  int short_yields_ = 0;  // in a row
};

}  // namespace hearth::collective
