// Yields the core while a rank waits, where ranks share cores and as long as that is cheap.
#pragma once

#include <sched.h>

#include <chrono>
#include <thread>

namespace hearth::collective {

// On Linux 6.6 and later a thread that yields runs again after the other threads of its core:
// within microseconds if those are ranks that wait too, after milliseconds if one computes
// (decision 050). A long yield is therefore followed by kWaitsWithout waits that sleep at once.
//
// Belongs to one rank; one thread uses it.
class BoundedYields {
 public:
  using Clock = std::chrono::steady_clock;

  static constexpr int kWaitsWithout = 10000;

  // `ranks`: number of ranks on this host.
  explicit BoundedYields(int ranks, Clock::duration long_yield = std::chrono::microseconds(100))
      : shares_core_(static_cast<unsigned>(ranks) > std::thread::hardware_concurrency()),
        long_yield_(long_yield) {}

  // Returns true if ranks share cores: a spin would take the core from the awaited rank.
  bool shares_core() const { return shares_core_; }

  // Yields once. Returns false, without a yield, if the caller should sleep instead.
  bool Yield() {
    if (waits_without_ > 0) {
      --waits_without_;
      return false;
    }
    const auto begin = Clock::now();
    ::sched_yield();
    if (Clock::now() - begin > long_yield_) waits_without_ = kWaitsWithout;
    return true;
  }

 private:
  const bool shares_core_;
  const Clock::duration long_yield_;
  int waits_without_ = 0;
};

}  // namespace hearth::collective
