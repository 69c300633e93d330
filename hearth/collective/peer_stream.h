// The bytes between this rank and one other. Never waits. Belongs to one thread, but for Shutdown.
#pragma once

#include <sys/uio.h>

#include <cstddef>
#include <memory>
#include <span>

#include "hearth/base/socket.h"
#include "hearth/collective/peer.h"

namespace hearth::collective {

class PeerStream {
 public:
  virtual ~PeerStream() = default;

  // How many bytes were taken from the parts, or put into them, in their order; 0: poll fd() first.
  // What Send has not taken comes first in its next call. Throws kUnavailable, naming the peer,
  // when it has closed, or what errno says.
  virtual size_t Send(std::span<const iovec> parts) = 0;
  virtual size_t Receive(std::span<const iovec> parts) = 0;

  virtual int fd() const = 0;
  // Ends both directions. Idempotent.
  virtual void Shutdown() noexcept = 0;
};

// Whether what failed with this errno may succeed once poll() says so.
bool WouldBlock(int error_number);

// Whether the other end of a connection is closed; bytes may be left to read. Does not wait.
bool HasEnded(int fd);

// In the clear.
std::unique_ptr<PeerStream> MakePlainStream(Connection connection, const Peer& peer);

}  // namespace hearth::collective
