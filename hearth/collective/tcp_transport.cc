#include "hearth/collective/tcp_transport.h"

#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/uio.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <iterator>
#include <thread>
#include <utility>

#include "hearth/base/error.h"

namespace hearth::collective {
namespace {

// Fits the second-level cache beside what it is added to.
constexpr size_t kSlotBytes = 256 << 10;
// Each try costs a system call or two: together some 10 us, about what a sleep and a wake-up cost.
constexpr int kSpins = 20;
// How often the clock is read while bytes keep moving.
constexpr unsigned kTurnsPerClockRead = 64;

// Room for what was sent and not yet acknowledged, where no wire needs more to stay busy: bytes
// that wait in the second-level cache make 4 MB a third cheaper than those that went to memory.
constexpr int kSendBytesWithinHost = 128 << 10;

bool IsWithinHost(int fd) {
  sockaddr_in6 own = {};  // the longer of the two kinds
  sockaddr_in6 other = {};
  socklen_t own_size = sizeof(own);
  socklen_t other_size = sizeof(other);
  if (::getsockname(fd, reinterpret_cast<sockaddr*>(&own), &own_size) != 0 ||
      ::getpeername(fd, reinterpret_cast<sockaddr*>(&other), &other_size) != 0) {
    return false;
  }
  if (own.sin6_family == AF_INET6) return IN6_ARE_ADDR_EQUAL(&own.sin6_addr, &other.sin6_addr);
  const auto v4 = [](const sockaddr_in6& address) {
    return reinterpret_cast<const sockaddr_in&>(address).sin_addr.s_addr;
  };
  return own.sin6_family == AF_INET && v4(own) == v4(other);
}

bool WouldBlock(int error_number) {
  return error_number == EAGAIN || error_number == EWOULDBLOCK || error_number == EINTR;
}

[[noreturn]] void ThrowBroken(const Peer& peer, int error_number) {
  if (error_number == 0 || error_number == EPIPE || error_number == ECONNRESET) {
    Throw(ErrorCode::kUnavailable, "{} closed the connection", peer.name());
  }
  ThrowErrno(error_number, fmt::format("the connection to {}", peer.name()));
}

}  // namespace

TcpTransport::TcpTransport(std::vector<std::optional<Connection>> connections,
                           const std::vector<Peer>& peers, int self,
                           std::shared_ptr<AbortSignal> abort)
    : size_(static_cast<int>(peers.size())), self_(self), abort_(std::move(abort)) {
  for (size_t i = 0; i < connections.size(); ++i) {
    if (!connections[i].has_value()) continue;
    lanes_.emplace_back(std::move(*connections[i]), static_cast<int>(i), peers[i]);
    const int fd = lanes_.back().connection.fd();
    if (IsWithinHost(fd)) {
      // Where the kernel refuses, only speed is lost.
      (void)::setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &kSendBytesWithinHost, sizeof(int));
    }
    lanes_.back().slot.reset(new std::byte[kSlotBytes]);  // not zeroed: never read before written
  }
  active_.reserve(lanes_.size());
  polled_.reserve(lanes_.size() + 1);
}

// If every rank agrees with the one before it, all agree.
void TcpTransport::Begin(const Call& call) {
  header_ = CallHeader(call, ++calls_);
  for (Lane& lane : lanes_) {
    lane.header_sent = lane.header_received = 0;
    lane.owes_header = lane.peer_index == (self_ + 1) % size_;
    lane.awaits_header = lane.peer_index == (self_ + size_ - 1) % size_;
  }
}

void TcpTransport::BeginPair(const Call& call, int peer) {
  for (Lane& lane : lanes_) {
    const bool partner = lane.peer_index == peer;
    lane.owes_header = partner && call.operation == Operation::kSend;
    lane.awaits_header = partner && call.operation == Operation::kReceive;
    if (!partner) continue;
    lane.header_sent = lane.header_received = 0;
    Call both = call;
    both.operation = Operation::kSend;
    const bool sends = call.operation == Operation::kSend;
    both.root = sends ? peer : self_;
    // Counted by direction: two ranks may both send first.
    header_ = CallHeader(both, sends ? ++lane.pair_sends : ++lane.pair_receives);
  }
}

bool TcpTransport::Sending(const Lane& lane) const {
  return lane.send < plan_->sends.size() ||
         (lane.owes_header && lane.header_sent < sizeof(CallHeader));
}

bool TcpTransport::Receiving(const Lane& lane) const {
  return lane.receive < plan_->receives.size() ||
         (lane.awaits_header && lane.header_received < sizeof(CallHeader));
}

void TcpTransport::Run(const Plan& plan, Deadline deadline) {
  abort_->ThrowIfRaised();
  Start(plan);
  int idle = 0;
  for (unsigned turn = 1; !AllDone(); ++turn) {
    bool moved = false;
    for (Lane* lane : active_) moved |= Advance(*lane);
    if (turn % kTurnsPerClockRead == 0 && deadline.expired()) ThrowLate();
    if (moved) {
      idle = 0;
    } else if (++idle <= kSpins) {
      std::this_thread::yield();
    } else {
      Wait(deadline);
    }
  }
}

void TcpTransport::Close() {
  for (Lane& lane : lanes_) lane.connection.Shutdown();
}

void TcpTransport::Start(const Plan& plan) {
  plan_ = &plan;
  complete_.assign(plan.receives.size(), false);
  active_.clear();
  for (Lane& lane : lanes_) {
    NextSend(lane, 0);
    NextReceive(lane, 0);
    if (Sending(lane) || Receiving(lane)) active_.push_back(&lane);
  }
}

void TcpTransport::NextSend(Lane& lane, size_t from) const {
  while (from < plan_->sends.size() && plan_->sends[from].peer != lane.peer_index) ++from;
  lane.send = from;
  lane.sent = 0;
}

void TcpTransport::NextReceive(Lane& lane, size_t from) const {
  while (from < plan_->receives.size() && plan_->receives[from].peer != lane.peer_index) ++from;
  lane.receive = from;
  lane.received = 0;
}

bool TcpTransport::AllDone() const {
  return std::all_of(active_.begin(), active_.end(),
                     [&](const Lane* lane) { return !Sending(*lane) && !Receiving(*lane); });
}

bool TcpTransport::Advance(Lane& lane) {
  const bool sent = SendSome(lane);
  const bool received = ReceiveSome(lane);
  return sent || received;
}

bool TcpTransport::MaySend(const Lane& lane) const {
  if (lane.send == plan_->sends.size()) return false;
  const int after = plan_->sends[lane.send].after;
  return after < 0 || complete_[static_cast<size_t>(after)];
}

bool TcpTransport::SendSome(Lane& lane) {
  bool moved = false;
  while (MaySend(lane)) {
    const Send& message = plan_->sends[lane.send];
    if (lane.sent < message.bytes) {
      if (SendFrom(lane, message) == 0) return moved;
      moved = true;
      if (lane.sent < message.bytes) return moved;  // the socket's buffer is full
    }
    NextSend(lane, lane.send + 1);
  }
  if (lane.owes_header && lane.header_sent < sizeof(CallHeader)) {
    moved |= SendFrom(lane, {lane.peer_index}) > 0;
  }
  return moved;
}

// Returns how many bytes the socket took.
size_t TcpTransport::SendFrom(Lane& lane, const Send& message) {
  auto* header = reinterpret_cast<std::byte*>(&header_);
  // sendmsg does not write to what it sends.
  iovec parts[] = {{header + lane.header_sent, sizeof(header_) - lane.header_sent},
                   {const_cast<std::byte*>(message.data) + lane.sent, message.bytes - lane.sent}};
  msghdr both = {};
  both.msg_iov = parts;
  both.msg_iovlen = std::size(parts);
  const ssize_t sent = ::sendmsg(lane.connection.fd(), &both, MSG_NOSIGNAL | MSG_DONTWAIT);
  if (sent < 0 && WouldBlock(errno)) return 0;
  if (sent < 0) ThrowBroken(lane.peer, errno);
  const size_t of_header = std::min(static_cast<size_t>(sent), parts[0].iov_len);
  lane.header_sent += of_header;
  lane.sent += static_cast<size_t>(sent) - of_header;
  return static_cast<size_t>(sent);
}

bool TcpTransport::ReceiveSome(Lane& lane) {
  bool moved = false;
  while (lane.receive < plan_->receives.size()) {
    const Receive& message = plan_->receives[lane.receive];
    if (lane.received < message.bytes) {
      if (ReceiveInto(lane, message) == 0) return moved;
      moved = true;
      if (lane.received < message.bytes) return moved;  // let the other lanes have their turn
    }
    complete_[lane.receive] = true;
    NextReceive(lane, lane.receive + 1);
  }
  if (lane.awaits_header && lane.header_received < sizeof(CallHeader)) {
    moved |= ReceiveInto(lane, {lane.peer_index}) > 0;
  }
  return moved;
}

// Returns how many bytes came, 0 when none was there.
size_t TcpTransport::ReceiveInto(Lane& lane, const Receive& message) {
  std::byte* const into =
      message.combine ? lane.slot.get() + lane.slot_used : message.data + lane.received;
  const size_t room = message.combine ? kSlotBytes - lane.slot_used : message.bytes;
  iovec parts[] = {{reinterpret_cast<std::byte*>(&lane.header) + lane.header_received,
                    sizeof(lane.header) - lane.header_received},
                   {into, std::min(room, message.bytes - lane.received)}};
  msghdr both = {};
  both.msg_iov = parts;
  both.msg_iovlen = std::size(parts);
  const ssize_t got = ::recvmsg(lane.connection.fd(), &both, MSG_DONTWAIT);
  if (got < 0 && WouldBlock(errno)) return 0;
  if (got <= 0) ThrowBroken(lane.peer, got == 0 ? 0 : errno);
  const size_t of_header = std::min(static_cast<size_t>(got), parts[0].iov_len);
  lane.header_received += of_header;
  if (of_header > 0) CheckHeader(lane);
  const size_t came = static_cast<size_t>(got) - of_header;
  if (message.combine) {
    const size_t size = SizeOf(plan_->arithmetic.type);
    const size_t held = lane.slot_used + came;
    const size_t whole = held / size;
    Combine(plan_->arithmetic, message.data + (lane.received - lane.slot_used), lane.slot.get(),
            whole);
    lane.slot_used = held - whole * size;
    std::memmove(lane.slot.get(), lane.slot.get() + whole * size, lane.slot_used);
  }
  lane.received += came;
  return static_cast<size_t>(got);
}

void TcpTransport::CheckHeader(const Lane& lane) const {
  const bool whole = lane.header_received == sizeof(lane.header);
  Require(!whole || lane.header == header_, ErrorCode::kInvalidArgument,
          "{} called {} as its operation {} where operation {} was awaited; all ranks must do the "
          "same in the same order",
          lane.peer.name(), lane.header.Describe(), lane.header.number, header_.number);
}

void TcpTransport::Wait(Deadline deadline) {
  polled_.clear();
  polled_.push_back({abort_->fd(), POLLIN, 0});
  for (const Lane* lane : active_) {
    const bool receiving = Receiving(*lane);
    const bool sending =
        MaySend(*lane) || (lane->owes_header && lane->header_sent < sizeof(CallHeader));
    if (!receiving && !sending) continue;
    const int events = (receiving ? POLLIN : 0) | (sending ? POLLOUT : 0);
    polled_.push_back({lane->connection.fd(), static_cast<short>(events), 0});
  }
  const int ready = ::poll(polled_.data(), polled_.size(), deadline.poll_timeout_ms());
  abort_->ThrowIfRaised();
  if (ready < 0 && errno != EINTR) ThrowErrno(errno, "waiting for other ranks");
  if (ready == 0 && deadline.expired()) ThrowLate();
}

void TcpTransport::ThrowLate() const {
  for (const Lane* lane : active_) {
    if (!Receiving(*lane)) continue;
    if (lane->header_received == 0) {
      Throw(ErrorCode::kDeadlineExceeded, "{} had not begun when the time was over",
            lane->peer.name());
    }
    if (lane->receive == plan_->receives.size()) continue;
    Throw(ErrorCode::kDeadlineExceeded, "{} had sent {} of {} bytes at the deadline",
          lane->peer.name(), lane->received, plan_->receives[lane->receive].bytes);
  }
  for (const Lane* lane : active_) {
    if (lane->send == plan_->sends.size()) continue;
    Throw(ErrorCode::kDeadlineExceeded, "{} had taken {} of {} bytes at the deadline",
          lane->peer.name(), lane->sent, plan_->sends[lane->send].bytes);
  }
  Throw(ErrorCode::kDeadlineExceeded, "the deadline has passed");
}

}  // namespace hearth::collective
