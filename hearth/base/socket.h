// Stream sockets with a deadline for every wait. Errors are hearth::Error: kUnavailable if the peer
// closed or reset the connection, kDeadlineExceeded, or the code that matches errno; messages name
// the peer. Never raises SIGPIPE.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "hearth/base/deadline.h"
#include "hearth/base/fd.h"

namespace hearth {

// Owns one connected socket. One thread may read while another writes; any thread may call
// Shutdown(), which ends both calls.
class Connection {
 public:
  // Takes ownership of a connected stream socket; `peer` is the name of the other side in errors.
  Connection(Fd fd, std::string peer);

  // Connects over TCP; `host` is a name or an address.
  static Connection Connect(const std::string& host, int port, Deadline deadline);
  // Two connected unix sockets.
  static std::pair<Connection, Connection> Pair();

  // Writes or reads exactly `size` bytes.
  void Write(const void* data, size_t size, Deadline deadline);
  void Write(std::string_view bytes, Deadline deadline) {
    Write(bytes.data(), bytes.size(), deadline);
  }
  void Read(void* data, size_t size, Deadline deadline);
  // Waits for at least one byte and reads up to `size`; 0 is end of file.
  size_t ReadSome(void* data, size_t size, Deadline deadline);

  // Non-blocking. TryRead: empty if no data is available, 0 at end of file. TryWrite: the number of
  // bytes that the socket accepted, which may be 0.
  std::optional<size_t> TryRead(void* data, size_t size);
  size_t TryWrite(const void* data, size_t size);

  // Waits until data or the end of file can be read; returns false at the deadline.
  bool WaitReadable(Deadline deadline) const;

  // Shuts both directions down: blocked calls of this side and the peer return. The descriptor
  // stays open until destruction, so that a concurrent call cannot use a reused number.
  void Shutdown() noexcept;

  // Releases ownership of the descriptor; the connection is then unusable.
  Fd Release() { return std::move(fd_); }

  int fd() const { return fd_.get(); }
  const std::string& peer() const { return peer_; }

 private:
  Fd fd_;
  std::string peer_;
};

// Ports to try, in order. `setting` is the setting's name, for errors.
struct PortRange {
  int first = 0;  // 0: the system chooses a port
  int count = 1;
  std::string setting = {};

  int last() const { return first + count - 1; }
};

// A listening TCP socket. One thread accepts; port() and fd() may be called by any thread.
class TcpListener {
 public:
  // Binds to the interface with the address `host`; port 0 is chosen by the system.
  explicit TcpListener(const std::string& host, int port = 0);
  // Listens on the first port that is free and permitted. Throws kResourceExhausted if there is
  // none.
  TcpListener(const std::string& host, const PortRange& ports);

  // Accepts the next client. Throws kDeadlineExceeded if none connected, kResourceExhausted if
  // descriptors or memory run out. Skips clients that disconnect before they are accepted.
  Connection Accept(Deadline deadline);

  int port() const { return port_; }
  int fd() const { return fd_.get(); }

 private:
  // Listens on one port; returns 0 or an errno.
  int TryListen(const std::string& host, int port);

  Fd fd_;
  int port_ = 0;
};

// "host:port", with brackets around an IPv6 address.
std::string EndpointName(std::string_view host, int port);

// poll(2) on one descriptor; continues after signals (see OnSignal). Returns revents, or 0 at the
// deadline.
short PollOne(int fd, short events, Deadline deadline);

}  // namespace hearth
