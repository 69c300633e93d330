#include "hearth/base/socket.h"

#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>

#include <cerrno>
#include <cstring>
#include <memory>

#include "hearth/base/error.h"
#include "hearth/base/on_signal.h"

namespace hearth {
namespace {

using Addresses = std::unique_ptr<addrinfo, decltype(&::freeaddrinfo)>;

Addresses Resolve(const std::string& host, int port, int flags) {
  addrinfo hints = {};
  hints.ai_family = AF_UNSPEC;
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = flags | AI_NUMERICSERV;
  addrinfo* found = nullptr;
  const int rc = ::getaddrinfo(host.c_str(), std::to_string(port).c_str(), &hints, &found);
  Require(rc == 0, ErrorCode::kUnavailable,
          "the host name '{}' cannot be resolved ({}); check the name or use an address", host,
          ::gai_strerror(rc));
  return {found, &::freeaddrinfo};
}

// Returns the result of a non-blocking connect: 0 or an errno.
// EINTR is like EINPROGRESS: the kernel continues to connect, and a second connect() would fail
// with EALREADY. POLLOUT reports both outcomes; SO_ERROR tells them apart.
int TryConnect(const Fd& fd, const addrinfo& address, Deadline deadline) {
  if (::connect(fd.get(), address.ai_addr, address.ai_addrlen) == 0) return 0;
  if (errno != EINPROGRESS && errno != EINTR) return errno;
  if (PollOne(fd.get(), POLLOUT, deadline) == 0) return ETIMEDOUT;
  int error = 0;
  socklen_t size = sizeof(error);
  if (::getsockopt(fd.get(), SOL_SOCKET, SO_ERROR, &error, &size) != 0) return errno;
  return error;
}

int BoundPort(int fd) {
  sockaddr_storage address = {};
  socklen_t size = sizeof(address);
  if (::getsockname(fd, reinterpret_cast<sockaddr*>(&address), &size) != 0) {
    ThrowErrno(errno, "cannot read the port of a listening socket");
  }
  if (address.ss_family == AF_INET6) {
    return ntohs(reinterpret_cast<const sockaddr_in6&>(address).sin6_port);
  }
  return ntohs(reinterpret_cast<const sockaddr_in&>(address).sin_port);
}

// "address:port" of a peer, for messages.
std::string NameOf(const sockaddr* address, socklen_t size) {
  char host[NI_MAXHOST] = "";
  char port[NI_MAXSERV] = "";
  if (::getnameinfo(address, size, host, sizeof(host), port, sizeof(port),
                    NI_NUMERICHOST | NI_NUMERICSERV) != 0) {
    return "an unknown address";
  }
  return EndpointName(host, std::stoi(port));
}

// True if an error of accept(2) concerns only the client being accepted: the next one may succeed.
bool IsErrorOfOneClient(int error_number) {
  switch (error_number) {
    case EINTR:
    case ECONNABORTED:
    case ECONNRESET:
    case EPROTO:
    case EPERM:  // rejected by a firewall rule
    case ENETDOWN:
    case ENETUNREACH:
    case ENOPROTOOPT:
    case EHOSTDOWN:
    case EHOSTUNREACH:
    case ENONET:
    case EOPNOTSUPP:
    case ETIMEDOUT:
      return true;
    default:
      return false;
  }
}

}  // namespace

std::string EndpointName(std::string_view host, int port) {
  const bool is_v6 = host.find(':') != std::string_view::npos;
  return is_v6 ? fmt::format("[{}]:{}", host, port) : fmt::format("{}:{}", host, port);
}

short PollOne(int fd, short events, Deadline deadline) {
  pollfd entry = {fd, events, 0};
  while (true) {
    // poll_timeout_ms() is at most 1e9 ms, so a timeout of poll() alone does not mean that the
    // deadline has passed.
    const int ready = ::poll(&entry, 1, deadline.poll_timeout_ms());
    if (ready > 0) return entry.revents;
    if (ready == 0 && deadline.expired()) return 0;
    if (ready == 0) continue;
    if (errno != EINTR) ThrowErrno(errno, "cannot wait for a socket");
    OnSignal::Run();
  }
}

Connection::Connection(Fd fd, std::string peer) : fd_(std::move(fd)), peer_(std::move(peer)) {
  // Disables Nagle's algorithm, which would only add delay, because each frame is written in one
  // call. Fails harmlessly on sockets that are not TCP.
  const int one = 1;
  ::setsockopt(fd_.get(), IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
}

Connection Connection::Connect(const std::string& host, int port, Deadline deadline) {
  const Addresses addresses = Resolve(host, port, 0);
  const std::string peer = EndpointName(host, port);
  // Tries each address, because a name may have IPv6 and IPv4 addresses; reports the last error.
  int error = EHOSTUNREACH;
  for (const addrinfo* address = addresses.get(); address != nullptr; address = address->ai_next) {
    Fd fd(::socket(address->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
    if (!fd.valid()) {
      error = errno;
      continue;
    }
    error = TryConnect(fd, *address, deadline);
    if (error == 0) return {std::move(fd), peer};
  }
  ThrowErrno(error, fmt::format("cannot connect to {}", peer));
}

std::pair<Connection, Connection> Connection::Pair() {
  int fds[2];
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds) != 0) {
    ThrowErrno(errno, "cannot create a socket pair");
  }
  return {Connection(Fd(fds[0]), "socket pair"), Connection(Fd(fds[1]), "socket pair")};
}

std::optional<size_t> Connection::TryRead(void* data, size_t size) {
  while (true) {
    // MSG_DONTWAIT affects only this call. O_NONBLOCK belongs to the open file description, so it
    // would also affect other processes that share an inherited socket.
    const ssize_t got = ::recv(fd(), data, size, MSG_DONTWAIT);
    if (got >= 0) return static_cast<size_t>(got);
    if (errno == EAGAIN || errno == EWOULDBLOCK) return std::nullopt;
    // Treats a reset as end of file: earlier data has already been read.
    if (errno == ECONNRESET) return 0;
    if (errno != EINTR) ThrowErrno(errno, fmt::format("cannot read from {}", peer_));
  }
}

size_t Connection::TryWrite(const void* data, size_t size) {
  while (true) {
    const ssize_t sent = ::send(fd(), data, size, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (sent >= 0) return static_cast<size_t>(sent);
    if (errno == EAGAIN || errno == EWOULDBLOCK) return 0;
    if (errno == EPIPE || errno == ECONNRESET) {
      Throw(ErrorCode::kUnavailable, "{} closed the connection", peer_);
    }
    if (errno != EINTR) ThrowErrno(errno, fmt::format("cannot write to {}", peer_));
  }
}

void Connection::Write(const void* data, size_t size, Deadline deadline) {
  const char* bytes = static_cast<const char*>(data);
  for (size_t done = 0; done < size;) {
    const size_t sent = TryWrite(bytes + done, size - done);
    done += sent;
    if (sent == 0) {
      Require(PollOne(fd(), POLLOUT, deadline) != 0, ErrorCode::kDeadlineExceeded,
              "{} accepted only {} of {} bytes before the deadline", peer_, done, size);
    }
  }
}

size_t Connection::ReadSome(void* data, size_t size, Deadline deadline) {
  while (true) {
    if (const auto got = TryRead(data, size)) return *got;
    Require(PollOne(fd(), POLLIN, deadline) != 0, ErrorCode::kDeadlineExceeded,
            "received no data from {} before the deadline", peer_);
  }
}

void Connection::Read(void* data, size_t size, Deadline deadline) {
  char* bytes = static_cast<char*>(data);
  for (size_t done = 0; done < size;) {
    const size_t got = ReadSome(bytes + done, size - done, deadline);
    Require(got > 0, ErrorCode::kUnavailable, "{} closed the connection after {} of {} bytes",
            peer_, done, size);
    done += got;
  }
}

bool Connection::WaitReadable(Deadline deadline) const {
  return PollOne(fd(), POLLIN, deadline) != 0;
}

void Connection::Shutdown() noexcept { ::shutdown(fd(), SHUT_RDWR); }

TcpListener::TcpListener(const std::string& host, int port) {
  const int error = TryListen(host, port);
  if (error != 0) ThrowErrno(error, fmt::format("cannot listen on {}", EndpointName(host, port)));
}

TcpListener::TcpListener(const std::string& host, const PortRange& ports) {
  for (int port = ports.first; port <= ports.last(); ++port) {
    const int error = TryListen(host, port);
    if (error == 0) return;
    // EACCES: a port below 1024, or one that a security module reserves.
    const bool is_taken = error == EADDRINUSE || error == EACCES;
    if (is_taken && port < ports.last()) continue;
    Require(!is_taken || ports.setting.empty(), ErrorCode::kResourceExhausted,
            "no port of {} ({}-{}) is free: cannot listen on {}: {}", ports.setting, ports.first,
            ports.last(), EndpointName(host, port), std::strerror(error));
    ThrowErrno(error, fmt::format("cannot listen on {}", EndpointName(host, port)));
  }
}

int TcpListener::TryListen(const std::string& host, int port) {
  // Uses only the first address: `host` names one interface, and this object has one socket and one
  // port.
  const Addresses addresses = Resolve(host, port, AI_PASSIVE);
  const addrinfo& address = *addresses;
  fd_.Reset(::socket(address.ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!fd_.valid()) ThrowErrno(errno, "cannot create a listening socket");
  const int one = 1;
  // Lets a restarted process bind to the same port while old connections are still in TIME_WAIT.
  ::setsockopt(fd_.get(), SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
  if (::bind(fd_.get(), address.ai_addr, address.ai_addrlen) != 0 ||
      ::listen(fd_.get(), SOMAXCONN) != 0) {
    return errno;
  }
  port_ = BoundPort(fd_.get());
  return 0;
}

Connection TcpListener::Accept(Deadline deadline) {
  while (true) {
    sockaddr_storage address = {};
    socklen_t size = sizeof(address);
    auto* generic = reinterpret_cast<sockaddr*>(&address);
    Fd fd(::accept4(fd_.get(), generic, &size, SOCK_CLOEXEC | SOCK_NONBLOCK));
    if (fd.valid()) return {std::move(fd), NameOf(generic, size)};
    const bool none_pending = errno == EAGAIN || errno == EWOULDBLOCK;
    if (!none_pending && !IsErrorOfOneClient(errno)) {
      ThrowErrno(errno, fmt::format("cannot accept connections on port {}", port_));
    }
    // After an error of one client, retries at once, because the next client may already be queued.
    // The deadline ends the loop even if every client fails.
    Require((!none_pending && !deadline.expired()) || PollOne(fd_.get(), POLLIN, deadline) != 0,
            ErrorCode::kDeadlineExceeded, "no client connected to port {} before the deadline",
            port_);
  }
}

}  // namespace hearth
