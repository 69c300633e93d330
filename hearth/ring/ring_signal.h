#pragma once

#include <atomic>
#include <cstdint>
#include <utility>

#include "hearth/base/deadline.h"
#include "hearth/base/fd.h"

namespace hearth::ring {

// Wake-ups between the two sides of a ring over one socketpair, which also detects the peer's
// death: its end closes with its process.
class RingSignal {
 public:
  enum class Outcome { kWoken, kPeerGone, kTimeout };

  explicit RingSignal(Fd socket) : socket_(std::move(socket)) {}

  // Wakes the peer if `peer_waits` is set, that is, if it sleeps or is about to. Call after
  // publishing the change that the peer waits for. Never blocks.
  void Notify(std::atomic<uint32_t>& peer_waits);

  // Sleeps until ready(), with `own_waits` set. Returns kWoken if ready() is true, kPeerGone if the
  // peer died or Shutdown was called, kTimeout at the deadline. One thread at a time.
  template <typename Ready>
  Outcome WaitUntil(std::atomic<uint32_t>& own_waits, Deadline deadline, Ready ready) {
    for (;;) {
      // Set own_waits before checking ready(). The peer publishes its change before checking
      // own_waits, so at least one side sees the other (all sequentially consistent).
      own_waits.store(1);
      if (ready()) return own_waits.store(0), Outcome::kWoken;
      const Outcome outcome = Sleep(deadline);
      if (outcome == Outcome::kWoken) continue;
      own_waits.store(0);
      return ready() ? Outcome::kWoken : outcome;
    }
  }

  // Checks without sleeping whether the peer's end is closed. Call from the thread of WaitUntil.
  bool PeerGone();

  // Wakes this side's own waiter, with kPeerGone, and the peer. Thread-safe.
  void Shutdown();

 private:
  Outcome Sleep(Deadline deadline);

  Fd socket_;
};

}  // namespace hearth::ring
