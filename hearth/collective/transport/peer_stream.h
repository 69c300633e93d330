#pragma once

#include <sys/uio.h>

#include <cstddef>
#include <memory>
#include <span>

#include "hearth/base/socket.h"
#include "hearth/collective/operation/peer.h"

namespace hearth::collective {

// Byte stream to one peer. Non-blocking. Used by one thread, except that any thread may call
// Shutdown.
class PeerStream {
 public:
  virtual ~PeerStream() = default;

  // Send or receive `parts` in order and return the number of bytes; 0 means that the caller must
  // poll fd() first. The next Send must start with the bytes that this one did not send. Both throw
  // kUnavailable, naming the peer, if the peer has closed the connection; other error codes follow
  // from errno.
  virtual size_t Send(std::span<const iovec> parts) = 0;
  virtual size_t Receive(std::span<const iovec> parts) = 0;

  virtual int fd() const = 0;
  // Closes both directions. Idempotent.
  virtual void Shutdown() noexcept = 0;
};

// True if an operation that failed with this errno may succeed after poll().
bool WouldBlock(int error_number);

// True if the peer has closed the connection; there may still be bytes to read. Does not block.
bool HasEnded(int fd);

// Makes a stream without encryption.
std::unique_ptr<PeerStream> MakePlainStream(Connection connection, const Peer& peer);

}  // namespace hearth::collective
