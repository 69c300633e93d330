#pragma once

#include <sys/uio.h>

#include <cstddef>
#include <memory>
#include <span>

#include "hearth/base/socket.h"
#include "hearth/collective/operation/peer.h"

namespace hearth::collective {

// Byte stream to one peer. Non-blocking. Belongs to one thread, except for Shutdown.
class PeerStream {
 public:
  virtual ~PeerStream() = default;

  // Return how many bytes were sent or received, in order over the parts; 0: poll fd() first. The
  // next Send must start with the bytes that this one did not send. Throw kUnavailable, naming the
  // peer, if it closed the connection, and otherwise by errno.
  virtual size_t Send(std::span<const iovec> parts) = 0;
  virtual size_t Receive(std::span<const iovec> parts) = 0;

  virtual int fd() const = 0;
  // Ends both directions. Idempotent.
  virtual void Shutdown() noexcept = 0;
};

// True if an operation that failed with this errno may succeed after poll().
bool WouldBlock(int error_number);

// True if the peer closed the connection; bytes may be left to read. Non-blocking.
bool HasEnded(int fd);

// Unencrypted.
std::unique_ptr<PeerStream> MakePlainStream(Connection connection, const Peer& peer);

}  // namespace hearth::collective
