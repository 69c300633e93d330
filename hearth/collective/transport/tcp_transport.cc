#include "hearth/collective/transport/tcp_transport.h"

#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/uio.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <iterator>
#include <utility>

#include "hearth/base/error.h"
#include "hearth/collective/common/pause.h"

namespace hearth::collective {
namespace {

// Fits the second-level cache together with its destination.
constexpr size_t kSlotBytes = 256 << 10;
// Each try costs a system call or two: together some 10 us, about the cost of a sleep and wake-up.
constexpr int kSpins = 20;
// After this many fruitless spins in a row, the network is slower than they are: the rest of the
// plan sleeps at once. The next plan spins again, as a short plan would pay for each sleep.
constexpr int kVainSpins = 4;
// A sleeping rank is woken after this many bytes, or the rest of a message: waking for every packet
// is 30 times as often at 1 Gbit/s.
constexpr int kWakeUpBytes = 64 << 10;
// Progress steps between two readings of the clock.
constexpr unsigned kTurnsPerClockRead = 64;

// Send buffer within a host, where no network latency needs a larger one: unacknowledged bytes that
// stay in the second-level cache make 4 MB a third cheaper than those that went to memory.
constexpr int kSendBytesWithinHost = 128 << 10;

bool IsWithinHost(int fd) {
  sockaddr_in6 own = {};  // large enough for both address families
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

}  // namespace

TcpTransport::TcpTransport(std::vector<std::unique_ptr<PeerStream>> streams,
                           const std::vector<Peer>& peers, int self,
                           std::shared_ptr<AbortSignal> abort)
    : size_(static_cast<int>(peers.size())), self_(self), abort_(std::move(abort)) {
  for (size_t i = 0; i < streams.size(); ++i) {
    if (streams[i] == nullptr) continue;
    lanes_.emplace_back(std::move(streams[i]), static_cast<int>(i), peers[i]);
    const int fd = lanes_.back().stream->fd();
    if (IsWithinHost(fd)) {
      // If the kernel refuses, only speed is lost.
      (void)::setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &kSendBytesWithinHost, sizeof(int));
    }
    lanes_.back().slot.reset(new std::byte[kSlotBytes]);  // not zeroed: never read before written
  }
  active_.reserve(lanes_.size());
  polled_.reserve(lanes_.size() + 1);
}

// If every rank agrees with the previous one, all agree.
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
    // Counted by direction: both ranks may send first.
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
  int vain = 0;
  for (unsigned turn = 1; !AllDone(); ++turn) {
    bool moved = false;
    for (Lane* lane : active_) moved |= Advance(*lane);
    if (turn % kTurnsPerClockRead == 0 && deadline.expired()) ThrowLate();
    if (moved) {
      if (idle > 0 && idle <= kSpins) vain = 0;
      idle = 0;
    } else if (vain < kVainSpins && ++idle <= kSpins) {
      Pause();  // no yield: it can cost milliseconds on a busy core (decision 050)
    } else {
      if (idle == kSpins + 1) ++vain;
      Wait(deadline);
    }
  }
}

std::string TcpTransport::DepartedRank() {
  for (const Lane& lane : lanes_) {
    if (HasEnded(lane.stream->fd())) return lane.peer.name();
  }
  return "";
}

void TcpTransport::Close() {
  for (Lane& lane : lanes_) lane.stream->Shutdown();
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
      if (lane.sent < message.bytes) return moved;  // the socket buffer is full
    }
    NextSend(lane, lane.send + 1);
    moved = true;  // also for an empty message, which may have been the last
  }
  if (lane.owes_header && lane.header_sent < sizeof(CallHeader)) {
    moved |= SendFrom(lane, {lane.peer_index}) > 0;
  }
  return moved;
}

// Returns the number of bytes that the socket accepted.
size_t TcpTransport::SendFrom(Lane& lane, const Send& message) {
  auto* header = reinterpret_cast<std::byte*>(&header_);
  // sendmsg does not modify the buffer.
  const iovec parts[] = {
      {header + lane.header_sent, sizeof(header_) - lane.header_sent},
      {const_cast<std::byte*>(message.data) + lane.sent, message.bytes - lane.sent}};
  const size_t sent = lane.stream->Send(parts);
  const size_t of_header = std::min(sent, parts[0].iov_len);
  lane.header_sent += of_header;
  lane.sent += sent - of_header;
  return sent;
}

bool TcpTransport::ReceiveSome(Lane& lane) {
  bool moved = false;
  while (lane.receive < plan_->receives.size()) {
    const Receive& message = plan_->receives[lane.receive];
    if (lane.received < message.bytes) {
      if (ReceiveInto(lane, message) == 0) return moved;
      moved = true;
      if (lane.received < message.bytes) return moved;  // give the other lanes their turn
    }
    complete_[lane.receive] = true;
    NextReceive(lane, lane.receive + 1);
    moved = true;
  }
  if (lane.awaits_header && lane.header_received < sizeof(CallHeader)) {
    moved |= ReceiveInto(lane, {lane.peer_index}) > 0;
  }
  return moved;
}

// Returns the number of received bytes, 0 if none are available.
size_t TcpTransport::ReceiveInto(Lane& lane, const Receive& message) {
  std::byte* const into =
      message.combine ? lane.slot.get() + lane.slot_used : message.data + lane.received;
  const size_t capacity = message.combine ? kSlotBytes - lane.slot_used : message.bytes;
  const iovec parts[] = {{reinterpret_cast<std::byte*>(&lane.header) + lane.header_received,
                          sizeof(lane.header) - lane.header_received},
                         {into, std::min(capacity, message.bytes - lane.received)}};
  const size_t got = lane.stream->Receive(parts);
  if (got == 0) return 0;
  const size_t of_header = std::min(got, parts[0].iov_len);
  lane.header_received += of_header;
  if (of_header > 0) CheckHeader(lane);
  const size_t came = got - of_header;
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
  return got;
}

void TcpTransport::CheckHeader(const Lane& lane) const {
  const bool whole = lane.header_received == sizeof(lane.header);
  Require(!whole || lane.header == header_, ErrorCode::kInvalidArgument,
          "{} called {} as its operation {} where operation {} was expected; {}", lane.peer.name(),
          lane.header.Describe(), lane.header.number, header_.number, kMatchAdvice);
}

// Wakes for few bytes as long as the peer's call is unknown: it may be another, short one.
void TcpTransport::SetWakeUp(Lane& lane) const {
  const bool known = lane.header_received == sizeof(CallHeader);
  const bool more = lane.receive < plan_->receives.size() &&
                    plan_->receives[lane.receive].bytes - lane.received >= 2UL * kWakeUpBytes;
  const int bytes = known && more ? kWakeUpBytes : 1;
  if (bytes == lane.wake_up_bytes) return;
  // If the kernel refuses, it wakes more often.
  (void)::setsockopt(lane.stream->fd(), SOL_SOCKET, SO_RCVLOWAT, &bytes, sizeof(bytes));
  lane.wake_up_bytes = bytes;
}

void TcpTransport::Wait(Deadline deadline) {
  polled_.clear();
  polled_.push_back({abort_->fd(), POLLIN, 0});
  for (Lane* lane : active_) {
    const bool receiving = Receiving(*lane);
    if (receiving) SetWakeUp(*lane);
    const bool sending =
        MaySend(*lane) || (lane->owes_header && lane->header_sent < sizeof(CallHeader));
    if (!receiving && !sending) continue;
    const int events = (receiving ? POLLIN : 0) | (sending ? POLLOUT : 0);
    polled_.push_back({lane->stream->fd(), static_cast<short>(events), 0});
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
      Throw(ErrorCode::kDeadlineExceeded, "{} had not started before the deadline",
            lane->peer.name());
    }
    if (lane->receive == plan_->receives.size()) continue;
    Throw(ErrorCode::kDeadlineExceeded, "{} had sent {} of {} bytes at the deadline",
          lane->peer.name(), lane->received, plan_->receives[lane->receive].bytes);
  }
  for (const Lane* lane : active_) {
    if (lane->send == plan_->sends.size()) continue;
    Throw(ErrorCode::kDeadlineExceeded, "{} had accepted {} of {} bytes at the deadline",
          lane->peer.name(), lane->sent, plan_->sends[lane->send].bytes);
  }
  Throw(ErrorCode::kDeadlineExceeded, "the deadline has passed");
}

}  // namespace hearth::collective
