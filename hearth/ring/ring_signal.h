#pragma once

#include <atomic>
#include <cstdint>
#include <utility>

#include "hearth/base/deadline.h"
#include "hearth/base/fd.h"

namespace hearth::ring {

// Wakes the two sides of a ring over a socketpair. The socketpair also reports the peer's death,
// because the kernel closes the peer's socket when its process ends.
class RingSignal {
 public:
  enum class Outcome { kWoken, kPeerGone, kTimeout };

  explicit RingSignal(Fd socket) : socket_(std::move(socket)) {}

  // Wakes the peer if `peer_waits` is set, i.e. if the peer sleeps or is about to. Call it after
  // publishing the change for which the peer waits. Never blocks.
  void Notify(std::atomic<uint32_t>& peer_waits);

  // Sleeps until ready() is true, with `own_waits` set. Returns kWoken if ready() is true,
  // kPeerGone if the peer died or Shutdown was called, kTimeout at the deadline. Only one thread at
  // a time may call it.
  template <typename Ready>
  Outcome WaitUntil(std::atomic<uint32_t>& own_waits, Deadline deadline, Ready ready) {
    for (;;) {
      // Sets own_waits before checking ready(). The peer publishes its change before checking
      // own_waits, so at least one side sees the other's store (all are sequentially consistent).
      own_waits.store(1);
      if (ready()) return own_waits.store(0), Outcome::kWoken;
      const Outcome outcome = Sleep(deadline);
      if (outcome == Outcome::kWoken) continue;
      own_waits.store(0);
      return ready() ? Outcome::kWoken : outcome;
    }
  }

  // Checks without sleeping whether the peer's end is closed. Only for the thread that calls
  // WaitUntil.
  bool PeerGone();

  // Wakes both this side's waiter, with kPeerGone, and the peer. Thread-safe.
  void Shutdown();

 private:
  Outcome Sleep(Deadline deadline);

  Fd socket_;
};

}  // namespace hearth::ring
