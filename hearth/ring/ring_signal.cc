#include "hearth/ring/ring_signal.h"

#include <poll.h>
#include <sys/socket.h>

#include <cerrno>

#include "hearth/base/socket.h"

namespace hearth::ring {

void RingSignal::Notify(std::atomic<uint32_t>& peer_waits) {
  // If the peer is awake, the common case, the plain load suffices. The exchange ensures that only
  // one byte is sent per sleep.
  if (peer_waits.load() == 0 || peer_waits.exchange(0) == 0) return;
  const char byte = 1;
  // Ignores errors: a full buffer means that wake-ups are already pending, and a waiting peer
  // detects a closed socket.
  (void)!::send(socket_.get(), &byte, 1, MSG_DONTWAIT | MSG_NOSIGNAL);
}

RingSignal::Outcome RingSignal::Sleep(Deadline deadline) {
  if (PollOne(socket_.get(), POLLIN, deadline) == 0) return Outcome::kTimeout;
  return PeerGone() ? Outcome::kPeerGone : Outcome::kWoken;
}

bool RingSignal::PeerGone() {
  char bytes[64];
  for (;;) {
    const ssize_t got = ::recv(socket_.get(), bytes, sizeof(bytes), MSG_DONTWAIT);
    if (got > 0) continue;
    if (got < 0 && errno == EINTR) continue;
    return got == 0 || (errno != EAGAIN && errno != EWOULDBLOCK);
  }
}

void RingSignal::Shutdown() { ::shutdown(socket_.get(), SHUT_RDWR); }

}  // namespace hearth::ring
