// Stream sockets whose every wait has a deadline. Failures are hearth::Error: kUnavailable when the
// peer closed or reset, kDeadlineExceeded, or what errno says; messages name the peer. No SIGPIPE.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "hearth/base/deadline.h"
#include "hearth/base/fd.h"

namespace hearth {

// Owns one connected socket. One thread may read while another writes; Shutdown() may come from any
// thread and ends both.
class Connection {
 public:
  // Takes over a connected stream socket; `peer` is what error messages call the other side.
  Connection(Fd fd, std::string peer);

  // Connects over TCP; `host` is a name or an address.
  static Connection Connect(const std::string& host, int port, Deadline deadline);
  // Two unix sockets connected to each other.
  static std::pair<Connection, Connection> Pair();

  // Writes or reads exactly `size` bytes.
  void Write(const void* data, size_t size, Deadline deadline);
  void Write(std::string_view bytes, Deadline deadline) {
    Write(bytes.data(), bytes.size(), deadline);
  }
  void Read(void* data, size_t size, Deadline deadline);
  // Waits for at least one byte and reads up to `size`; 0 is end of file.
  size_t ReadSome(void* data, size_t size, Deadline deadline);

  // These never wait. TryRead: nothing when there is nothing to read, 0 at end of file. TryWrite:
  // the number of bytes that the socket took, which may be 0.
  std::optional<size_t> TryRead(void* data, size_t size);
  size_t TryWrite(const void* data, size_t size);

  // False when the deadline came first. End of file counts as readable.
  bool WaitReadable(Deadline deadline) const;

  // Both directions end: waits of this side and of the peer return at once. The descriptor stays
  // open until destruction, so a concurrent call cannot touch a reused number.
  void Shutdown() noexcept;

  // Gives the descriptor away; the connection is unusable then.
  Fd Release() { return std::move(fd_); }

  int fd() const { return fd_.get(); }
  const std::string& peer() const { return peer_; }

 private:
  Fd fd_;
  std::string peer_;
};

// Ports that may be taken, in this order. `setting` is what names them in an error.
struct PortRange {
  int first = 0;  // 0: the system chooses
  int count = 1;
  std::string setting = {};

  int last() const { return first + count - 1; }
};

class TcpListener {
 public:
  // Binds to the one interface that `host` names; port 0 lets the system choose.
  explicit TcpListener(const std::string& host, int port = 0);
  // On the first port that nobody has and this process may take. Throws kResourceExhausted where
  // there is none.
  TcpListener(const std::string& host, const PortRange& ports);

  // Throws kDeadlineExceeded when nobody came, kResourceExhausted while descriptors or memory are
  // used up; skips a peer that has left again before it was accepted.
  Connection Accept(Deadline deadline);

  int port() const { return port_; }
  int fd() const { return fd_.get(); }

 private:
  // 0 or an errno.
  int TryListen(const std::string& host, int port);

  Fd fd_;
  int port_ = 0;
};

// "host:port", with brackets around an IPv6 address.
std::string EndpointName(std::string_view host, int port);

// poll(2) on one descriptor that continues after signals (see OnSignal); returns revents, 0 at the
// deadline.
short PollOne(int fd, short events, Deadline deadline);

}  // namespace hearth
