// Wake-ups between the two sides of a ring over one socketpair, which also shows the other side's
// death: its end closes with its process.
#pragma once

#include <atomic>
#include <cstdint>
#include <utility>

#include "hearth/base/deadline.h"
#include "hearth/base/fd.h"

namespace hearth::ring {

class RingSignal {
 public:
  enum class Outcome { kWoken, kPeerGone, kTimeout };

  explicit RingSignal(Fd socket) : socket_(std::move(socket)) {}

  // Wakes the peer where `peer_waits` says that it sleeps or is about to. Call it after the change
  // that the peer waits for is visible. Never blocks.
  void Notify(std::atomic<uint32_t>& peer_waits);

  // Sleeps until ready(), announced in `own_waits`. Returns kWoken with ready() true, or one of
  // the others with ready() false. One thread at a time.
  template <typename Ready>
  Outcome WaitUntil(std::atomic<uint32_t>& own_waits, Deadline deadline, Ready ready) {
    for (;;) {
      // Announce first, look second: the peer changes first and looks for the announcement second,
      // so one of the two sees the other (both sequentially consistent).
      own_waits.store(1);
      if (ready()) return own_waits.store(0), Outcome::kWoken;
      const Outcome outcome = Sleep(deadline);
      if (outcome == Outcome::kWoken) continue;
      own_waits.store(0);
      return ready() ? Outcome::kWoken : outcome;
    }
  }

  // Without sleeping: whether the peer's end is closed. Same thread as WaitUntil.
  bool PeerGone();

  // Wakes this side's own sleeper, with kPeerGone, and tells the peer. Thread-safe.
  void Shutdown();

 private:
  Outcome Sleep(Deadline deadline);

  Fd socket_;
};

}  // namespace hearth::ring
