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
#include "hearth/collective/operation/pause.h"

namespace hearth::collective {
namespace {

// Small enough for a slot and its destination to fit the second-level cache together.
constexpr size_t kSlotBytes = 256 << 10;
// Tries per spin. Each try costs one or two system calls; together they take some 10 us, about as
// long as a sleep and a wake-up.
constexpr int kSpins = 20;
// After this many fruitless spins in a row, the network is slower than a spin, so the rest of the
// plan sleeps at once. The next plan spins again, because sleeps are expensive in short plans.
constexpr int kMaxFailedSpins = 4;
// A sleeping rank is woken after this many bytes or at the end of a message. Waking it for every
// packet would wake it 30 times as often at 1 Gbit/s.
constexpr int kWakeUpBytes = 64 << 10;
// Progress steps between two readings of the clock.
constexpr unsigned kTurnsPerClockRead = 64;

// Send buffer within a host, where no network latency requires a larger one. Unacknowledged bytes
// then stay in the second-level cache, which reduces the cost of a 4 MB message by a third.
constexpr int kSendBytesWithinHost = 128 << 10;

// Decides whether a rank whose plan makes no progress tries again or sleeps.
class Spins {
 public:
  explicit Spins(BoundedYields& yields)
      : yields_(yields), limit_(yields.shares_core() ? BoundedYields::kPerWait : kSpins) {}

  void Moved() {
    // A spin that made progress before its limit was faster than a sleep.
    if (tries_ > 0 && tries_ <= limit_) failed_ = 0;
    tries_ = 0;
  }
  // Returns true to try again, false to sleep.
  bool Next() {
    if (failed_ == kMaxFailedSpins) return false;
    if (++tries_ == limit_ + 1) ++failed_;
    if (tries_ > limit_) return false;
    if (yields_.shares_core()) {
      if (yields_.Yield()) return true;
      // Sleeps without a spin, which counts neither as a success nor as a failure.
      tries_ = limit_ + 1;
      return false;
    }
    Pause();  // does not yield, because a yield can cost milliseconds on a busy core (decision 050)
    return true;
  }

 private:
  BoundedYields& yields_;
  const int limit_;
  int tries_ = 0;   // tries in a row that moved nothing
  int failed_ = 0;  // spins in a row that ended in a sleep
};

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

// Returns the number of ranks on this rank's host, including this rank.
int RanksOfHost(const std::vector<std::unique_ptr<PeerStream>>& streams) {
  return 1 + static_cast<int>(std::count_if(streams.begin(), streams.end(), [](const auto& stream) {
           return stream != nullptr && IsWithinHost(stream->fd());
         }));
}

}  // namespace

TcpTransport::TcpTransport(std::vector<std::unique_ptr<PeerStream>> streams,
                           const std::vector<Peer>& peers, int self,
                           std::shared_ptr<AbortSignal> abort, int ranks_of_host)
    : size_(static_cast<int>(peers.size())),
      self_(self),
      abort_(std::move(abort)),
      headers_(self, size_),
      yields_(ranks_of_host > 0 ? ranks_of_host : RanksOfHost(streams)) {
  for (size_t i = 0; i < streams.size(); ++i) {
    if (streams[i] == nullptr) continue;
    states_.emplace_back(std::move(streams[i]), static_cast<int>(i), peers[i]);
    const int fd = states_.back().stream->fd();
    if (IsWithinHost(fd)) {
      // If the kernel rejects the size, the transport is only slower.
      (void)::setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &kSendBytesWithinHost, sizeof(int));
    }
    // The slot is not zeroed, because it is written before it is read.
    states_.back().slot.reset(new std::byte[kSlotBytes]);
  }
  active_.reserve(states_.size());
  polled_.reserve(states_.size() + 1);
}

void TcpTransport::Begin(const Call& call) {
  headers_.Begin(call);
  for (PeerState& state : states_) {
    state.header_sent = state.header_received = 0;
    headers_.BeginWith(state.peer_index, &state.headers);
  }
}

void TcpTransport::BeginPair(const Call& call, int peer) {
  for (PeerState& state : states_) {
    if (!headers_.BeginPair(call, peer, state.peer_index, &state.headers)) continue;
    state.header_sent = state.header_received = 0;
  }
}

bool TcpTransport::Sending(const PeerState& state) const {
  return state.send < plan_->sends.size() ||
         (state.headers.owed && state.header_sent < sizeof(CallHeader));
}

bool TcpTransport::Receiving(const PeerState& state) const {
  return state.receive < plan_->receives.size() ||
         (state.headers.awaited && state.header_received < sizeof(CallHeader));
}

void TcpTransport::Run(const Plan& plan, Deadline deadline) {
  abort_->ThrowIfRaised();
  Start(plan);
  Spins spins(yields_);
  for (unsigned turn = 1; !AllDone(); ++turn) {
    bool moved = false;
    for (PeerState* state : active_) moved |= Advance(*state);
    if (turn % kTurnsPerClockRead == 0 && deadline.expired()) ThrowLate();
    if (moved) {
      spins.Moved();
    } else if (!spins.Next()) {
      Wait(deadline);
    }
  }
}

std::string TcpTransport::DepartedRank() {
  for (const PeerState& state : states_) {
    if (HasEnded(state.stream->fd())) return state.peer.name();
  }
  return "";
}

void TcpTransport::Close() {
  for (PeerState& state : states_) state.stream->Shutdown();
}

// Only peers with messages or headers left are active, so a plan for a few neighbours costs nothing
// for the other peers.
void TcpTransport::Start(const Plan& plan) {
  plan_ = &plan;
  complete_.assign(plan.receives.size(), false);
  active_.clear();
  for (PeerState& state : states_) {
    NextSend(state, 0);
    NextReceive(state, 0);
    if (Sending(state) || Receiving(state)) active_.push_back(&state);
  }
}

void TcpTransport::NextSend(PeerState& state, size_t from) const {
  while (from < plan_->sends.size() && plan_->sends[from].peer != state.peer_index) ++from;
  state.send = from;
  state.sent = 0;
}

void TcpTransport::NextReceive(PeerState& state, size_t from) const {
  while (from < plan_->receives.size() && plan_->receives[from].peer != state.peer_index) ++from;
  state.receive = from;
  state.received = 0;
}

bool TcpTransport::AllDone() const {
  return std::all_of(active_.begin(), active_.end(), [&](const PeerState* state) {
    return !Sending(*state) && !Receiving(*state);
  });
}

bool TcpTransport::Advance(PeerState& state) {
  const bool sent = SendSome(state);
  const bool received = ReceiveSome(state);
  return sent || received;
}

bool TcpTransport::MaySend(const PeerState& state) const {
  if (state.send == plan_->sends.size()) return false;
  const int after = plan_->sends[state.send].after;
  return after < 0 || complete_[static_cast<size_t>(after)];
}

bool TcpTransport::SendSome(PeerState& state) {
  bool moved = false;
  while (MaySend(state)) {
    const Send& message = plan_->sends[state.send];
    if (state.sent < message.bytes) {
      if (SendFrom(state, message) == 0) return moved;
      moved = true;
      if (state.sent < message.bytes) return moved;  // the socket buffer is full
    }
    NextSend(state, state.send + 1);
    moved = true;  // true even for an empty message, which may have been the last one
  }
  // A header is sent with the first bytes of a message, in one system call. It is sent alone only
  // if there is no message.
  if (state.headers.owed && state.header_sent < sizeof(CallHeader)) {
    moved |= SendFrom(state, {state.peer_index}) > 0;
  }
  return moved;
}

// Returns the number of bytes that the socket accepted.
size_t TcpTransport::SendFrom(PeerState& state, const Send& message) {
  const auto* header = reinterpret_cast<const std::byte*>(&headers_.own());
  // sendmsg does not modify the buffers.
  const iovec parts[] = {
      {const_cast<std::byte*>(header) + state.header_sent, sizeof(CallHeader) - state.header_sent},
      {const_cast<std::byte*>(message.data) + state.sent, message.bytes - state.sent}};
  const size_t sent = state.stream->Send(parts);
  const size_t of_header = std::min(sent, parts[0].iov_len);
  state.header_sent += of_header;
  state.sent += sent - of_header;
  return sent;
}

bool TcpTransport::ReceiveSome(PeerState& state) {
  bool moved = false;
  while (state.receive < plan_->receives.size()) {
    const Receive& message = plan_->receives[state.receive];
    if (state.received < message.bytes) {
      if (ReceiveInto(state, message) == 0) return moved;
      moved = true;
      if (state.received < message.bytes) return moved;  // lets the other peers proceed first
    }
    complete_[state.receive] = true;
    NextReceive(state, state.receive + 1);
    moved = true;
  }
  if (state.headers.awaited && state.header_received < sizeof(CallHeader)) {
    moved |= ReceiveInto(state, {state.peer_index}) > 0;
  }
  return moved;
}

// Returns the number of received bytes, 0 if none are available.
size_t TcpTransport::ReceiveInto(PeerState& state, const Receive& message) {
  std::byte* const into =
      message.combine ? state.slot.get() + state.slot_used : message.data + state.received;
  const size_t capacity = message.combine ? kSlotBytes - state.slot_used : message.bytes;
  const iovec parts[] = {
      {reinterpret_cast<std::byte*>(&state.headers.received) + state.header_received,
       sizeof(CallHeader) - state.header_received},
      {into, std::min(capacity, message.bytes - state.received)}};
  const size_t got = state.stream->Receive(parts);
  if (got == 0) return 0;
  const size_t of_header = std::min(got, parts[0].iov_len);
  state.header_received += of_header;
  if (of_header > 0 && state.header_received == sizeof(CallHeader)) {
    headers_.Check(state.headers, state.peer);
  }
  const size_t payload = got - of_header;
  // The received bytes may end within an element. Its start is moved to the front of the slot and
  // the rest is received behind it, so the slot always begins with the element at `received -
  // slot_used`.
  if (message.combine) {
    const size_t size = SizeOf(plan_->arithmetic.type);
    const size_t held = state.slot_used + payload;
    const size_t whole = held / size;
    Combine(plan_->arithmetic, message.data + (state.received - state.slot_used), state.slot.get(),
            whole);
    state.slot_used = held - whole * size;
    std::memmove(state.slot.get(), state.slot.get() + whole * size, state.slot_used);
  }
  state.received += payload;
  return got;
}

// Until the peer's header has arrived, every byte wakes this rank, because the peer may be in
// another, shorter operation.
void TcpTransport::SetWakeUp(PeerState& state) const {
  const bool known = state.header_received == sizeof(CallHeader);
  const bool more = state.receive < plan_->receives.size() &&
                    plan_->receives[state.receive].bytes - state.received >= 2UL * kWakeUpBytes;
  const int bytes = known && more ? kWakeUpBytes : 1;
  if (bytes == state.wake_up_bytes) return;
  // If the kernel rejects the limit, it wakes this rank more often.
  (void)::setsockopt(state.stream->fd(), SOL_SOCKET, SO_RCVLOWAT, &bytes, sizeof(bytes));
  state.wake_up_bytes = bytes;
}

void TcpTransport::Wait(Deadline deadline) {
  polled_.clear();
  polled_.push_back({abort_->fd(), POLLIN, 0});
  for (PeerState* state : active_) {
    const bool receiving = Receiving(*state);
    if (receiving) SetWakeUp(*state);
    const bool sending =
        MaySend(*state) || (state->headers.owed && state->header_sent < sizeof(CallHeader));
    // Skips a peer whose next message must wait for another receive: the peer's socket is writable,
    // so poll would return at once.
    if (!receiving && !sending) continue;
    const int events = (receiving ? POLLIN : 0) | (sending ? POLLOUT : 0);
    polled_.push_back({state->stream->fd(), static_cast<short>(events), 0});
  }
  const int ready = ::poll(polled_.data(), polled_.size(), deadline.poll_timeout_ms());
  abort_->ThrowIfRaised();
  if (ready < 0 && errno != EINTR) ThrowErrno(errno, "cannot wait for other ranks");
  if (ready == 0 && deadline.expired()) ThrowLate();
}

// Names the peer that is the likely cause. Peers whose data is missing are checked first, because a
// blocked send is often only a consequence of another rank's absence.
void TcpTransport::ThrowLate() const {
  for (const PeerState* state : active_) {
    if (!Receiving(*state)) continue;
    if (state->header_received == 0) {
      Throw(ErrorCode::kDeadlineExceeded, "{} had sent nothing before the deadline",
            state->peer.name());
    }
    if (state->receive == plan_->receives.size()) continue;
    Throw(ErrorCode::kDeadlineExceeded, "{} had sent {} of {} bytes at the deadline",
          state->peer.name(), state->received, plan_->receives[state->receive].bytes);
  }
  for (const PeerState* state : active_) {
    if (state->send == plan_->sends.size()) continue;
    Throw(ErrorCode::kDeadlineExceeded, "{} had accepted {} of {} bytes at the deadline",
          state->peer.name(), state->sent, plan_->sends[state->send].bytes);
  }
  Throw(ErrorCode::kDeadlineExceeded, "the deadline passed while {} peers were active",
        active_.size());
}

}  // namespace hearth::collective
