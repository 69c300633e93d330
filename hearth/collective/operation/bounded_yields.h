// Yields the core while a rank waits, where ranks share cores and as long as that is cheap.
#pragma once

#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>

namespace hearth::collective {

// On Linux 6.6 and later a thread that yields runs again after the other threads of its core:
// within microseconds if those are ranks that wait too, after milliseconds if one computes
// (decision 050). A long yield is therefore followed by waits that sleep at once: by few if long
// yields are rare, as where a peer takes a moment before it joins, by up to kMaxSleepingWaits if
// they recur.
//
// Belongs to one rank; one thread uses it.
class BoundedYields {
 public:
  using Clock = std::chrono::steady_clock;

  // Waits that sleep after a long yield; four times as many after each further one, until
  // kShortYields in a row were short.
  static constexpr int kFirstSleepingWaits = 16;
  static constexpr int kMaxSleepingWaits = 16384;
  static constexpr int kShortYields = 200;
  // Yields of one wait before it sleeps; 10 to 30 us while no other thread is ready.
  static constexpr int kPerWait = 50;

  // `ranks`: number of ranks on this host.
  explicit BoundedYields(int ranks, Clock::duration long_yield = std::chrono::microseconds(100))
      : shares_core_(ranks > Cores()), long_yield_(long_yield) {}

  // For tests: yields that last longer are long.
  void set_long_yield(Clock::duration long_yield) { long_yield_ = long_yield; }

  // Returns true if ranks share cores: a spin would take the core from the awaited rank.
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
  // Those that this process may use; std::thread::hardware_concurrency() counts the machine's.
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
