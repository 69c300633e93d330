#include "hearth/collective/transport/peer_stream.h"

#include <poll.h>
#include <sys/socket.h>

#include <cerrno>
#include <utility>

#include "hearth/base/error.h"

namespace hearth::collective {
namespace {

class PlainStream : public PeerStream {
 public:
  PlainStream(Connection connection, Peer peer)
      : connection_(std::move(connection)), peer_(std::move(peer)) {}

  size_t Send(std::span<const iovec> parts) override {
    const msghdr message = MessageOf(parts);
    const ssize_t sent = ::sendmsg(fd(), &message, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (sent >= 0) return static_cast<size_t>(sent);
    if (WouldBlock(errno)) return 0;
    ThrowBroken(errno);
  }

  // The parts must have room for at least one byte. Otherwise recvmsg would return 0, which here
  // means that the peer has closed the connection.
  size_t Receive(std::span<const iovec> parts) override {
    msghdr message = MessageOf(parts);
    const ssize_t got = ::recvmsg(fd(), &message, MSG_DONTWAIT);
    if (got > 0) return static_cast<size_t>(got);
    if (got < 0 && WouldBlock(errno)) return 0;
    ThrowBroken(got == 0 ? 0 : errno);
  }

  int fd() const override { return connection_.fd(); }
  void Shutdown() noexcept override { connection_.Shutdown(); }

 private:
  static msghdr MessageOf(std::span<const iovec> parts) {
    msghdr message = {};
    message.msg_iov = const_cast<iovec*>(parts.data());  // sendmsg does not modify the parts
    message.msg_iovlen = parts.size();
    return message;
  }

  [[noreturn]] void ThrowBroken(int error_number) const {
    if (error_number == 0 || error_number == EPIPE || error_number == ECONNRESET) {
      Throw(ErrorCode::kUnavailable, "{} closed the connection", peer_.name());
    }
    ThrowErrno(error_number, fmt::format("the connection to {} failed", peer_.name()));
  }

  Connection connection_;
  const Peer peer_;
};

}  // namespace

bool WouldBlock(int error_number) {
  return error_number == EAGAIN || error_number == EWOULDBLOCK || error_number == EINTR;
}

// POLLRDHUP reports the peer's FIN even if earlier bytes are still unread; poll always reports
// errors.
bool HasEnded(int fd) {
  pollfd polled = {fd, POLLRDHUP, 0};
  return ::poll(&polled, 1, 0) > 0;
}

std::unique_ptr<PeerStream> MakePlainStream(Connection connection, const Peer& peer) {
  return std::make_unique<PlainStream>(std::move(connection), peer);
}

}  // namespace hearth::collective
