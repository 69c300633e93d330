#include "hearth/collective/transport/ucx_transport.h"

#include <algorithm>
#include <cerrno>
#include <thread>
#include <utility>

#include "hearth/base/error.h"

namespace hearth::collective {
namespace {

// Size of the pieces in which messages are sent: one piece is in flight while another one is summed
// in the second-level cache. A multiple of every element size.
constexpr size_t kPieceBytes = 256 << 10;
// Number of pieces in flight to and from each peer: one is summed while the others arrive.
constexpr size_t kPiecesUnderWay = 4;
// Number of fruitless progress calls before a sleep. Each one yields, because ranks may share
// cores.
constexpr int kYields = 200;
// Progress steps between two checks of the deadline.
constexpr unsigned kTurnsPerCheck = 64;
constexpr double kLongestSleep = 0.1;  // UCX has timers that its descriptor does not report
// The end of the TCP connection can overtake RDMA data that the peer sent earlier, so this rank
// waits this long for such data.
constexpr double kPatience = 0.1;
constexpr uint32_t kMaxAddressBytes = 1 << 16;

template <typename Message>
size_t Next(const std::vector<Message>& messages, int peer, size_t from) {
  while (from < messages.size() && messages[from].peer != peer) ++from;
  return from;
}

}  // namespace

UcxTransport::UcxTransport(std::vector<std::optional<Connection>> connections,
                           const std::vector<Peer>& peers, int self,
                           std::shared_ptr<AbortSignal> abort, const std::string& transports,
                           Deadline deadline)
    : size_(static_cast<int>(peers.size())),
      self_(self),
      abort_(std::move(abort)),
      headers_(self, size_),
      worker_(self, size_, transports) {
  for (size_t i = 0; i < connections.size(); ++i) {
    if (!connections[i].has_value()) continue;
    states_.emplace_back(std::move(*connections[i]), static_cast<int>(i), peers[i]);
  }
  ExchangeAddresses(deadline);
  Greet(deadline);
}

void UcxTransport::ExchangeAddresses(Deadline deadline) {
  const std::string own = worker_.Address();
  const auto size = static_cast<uint32_t>(own.size());
  for (PeerState& state : states_) {
    state.connection.Write(&size, sizeof(size), deadline);
    state.connection.Write(own, deadline);
  }
  for (PeerState& state : states_) {
    try {
      uint32_t its_size = 0;
      state.connection.Read(&its_size, sizeof(its_size), deadline);
      Require(its_size <= kMaxAddressBytes, ErrorCode::kDataLoss,
              "the peer's address has {} bytes; the limit is {}", its_size, kMaxAddressBytes);
      std::string address(its_size, '\0');
      state.connection.Read(address.data(), its_size, deadline);
      worker_.Connect(state.peer_index, address);
    } catch (const Error& error) {
      throw Error(error.code(), fmt::format("cannot connect to {} by RDMA", state.peer.name()),
                  error);
    }
  }
}

// Exchanges a byte with every peer, so that broken connections fail here and not in the first
// operation. In the first round the headers are acknowledged, so that UCX completes its setup on
// this rank; the second round confirms that the peer's setup is complete too. UCX 1.13 may
// terminate the process of a rank whose peer leaves during the setup.
void UcxTransport::Greet(Deadline deadline) {
  std::vector<std::byte> bytes(states_.size() + 1);
  Plan plan;
  for (size_t i = 0; i < states_.size(); ++i) {
    plan.sends.push_back({states_[i].peer_index, &bytes[states_.size()], 1});
    plan.receives.push_back({states_[i].peer_index, &bytes[i], 1});
  }
  try {
    for (const bool first : {true, false}) {
      greeting_ = first;
      Begin({});
      Run(plan, deadline);
    }
  } catch (const Error& error) {
    throw Error(error.code(), "cannot connect by RDMA", error);
  }
}

void UcxTransport::Begin(const Call& call) {
  headers_.Begin(call);
  for (PeerState& state : states_) {
    state.header_sent = state.header_posted = state.header_received = false;
    headers_.BeginWith(state.peer_index, &state.headers);
  }
}

void UcxTransport::BeginPair(const Call& call, int peer) {
  for (PeerState& state : states_) {
    if (!headers_.BeginPair(call, peer, state.peer_index, &state.headers)) continue;
    state.header_sent = state.header_posted = state.header_received = false;
  }
}

void UcxTransport::Run(const Plan& plan, Deadline deadline) {
  Require(!worker_.stopped(), ErrorCode::kUnavailable, "the connections have been closed");
  abort_->ThrowIfRaised();
  try {
    Start(plan);
    Carry(deadline);
  } catch (...) {
    Close();  // ends transfers, because the caller may now free their memory
    throw;
  }
}

void UcxTransport::Close() {
  for (PeerState& state : states_) state.connection.Shutdown();
  if (worker_.stopped()) return;
  for (PeerState& state : states_) {
    for (Flight& flight : state.receiving) {
      if (flight.request != nullptr && !ucx::IsError(flight.request))
        worker_.Cancel(flight.request);
    }
  }
  // The caller may free its buffers after Close, so no transfer may remain through which a device
  // could still write to them.
  worker_.CloseEndpoints();
  const Deadline deadline = Deadline::After(1);
  const auto end = [&](void*& request) {
    while (worker_.Check(request) == ucx::kInProgress && !deadline.expired()) worker_.Progress();
  };
  for (PeerState& state : states_) {
    for (Flight& flight : state.receiving) end(flight.request);
    for (Flight& flight : state.sending) end(flight.request);
    state.receiving.clear();
    state.sending.clear();
  }
  end(flush_);
  worker_.Stop();
}

void UcxTransport::Start(const Plan& plan) {
  plan_ = &plan;
  complete_.assign(plan.receives.size(), false);
  flushing_ = false;
  active_.clear();
  for (PeerState& state : states_) {
    state.send = Next(plan.sends, state.peer_index, 0);
    state.receive = Next(plan.receives, state.peer_index, 0);
    state.send_from = state.receive_from = state.received = 0;
    if (!Done(state)) active_.push_back(&state);
  }
}

bool UcxTransport::Done(const PeerState& state) const {
  return state.send == plan_->sends.size() && state.receive == plan_->receives.size() &&
         state.sending.empty() && state.receiving.empty() &&
         (!state.headers.owed || state.header_sent) &&
         (!state.headers.awaited || state.header_received);
}

bool UcxTransport::AllDone() const {
  return std::all_of(active_.begin(), active_.end(),
                     [&](const PeerState* state) { return Done(*state); });
}

void UcxTransport::Carry(Deadline deadline) {
  if (active_.empty()) return;
  int idle = 0;
  for (unsigned turn = 1;; ++turn) {
    const bool busy = worker_.Progress();
    bool moved = false;
    for (PeerState* state : active_) moved |= Advance(*state);
    if (AllDone() && Flushed()) return;
    if (turn % kTurnsPerCheck == 0 && deadline.expired()) ThrowLate();
    if (moved && patience_.has_value()) patience_ = Deadline::After(kPatience);
    if (busy || moved) {
      idle = 0;
    } else if (++idle <= kYields) {
      std::this_thread::yield();
    } else {
      Wait(deadline);
    }
  }
}

// Flushes because some UCX transports send only while the sender calls progress, and the caller is
// about to do other work. Errors of the flush are ignored, because a peer that has left has
// received everything that it waited for.
bool UcxTransport::Flushed() {
  if (!flushing_ && flush_ == nullptr) flush_ = worker_.Flush();
  flushing_ = true;
  if (worker_.Check(flush_) != ucx::kInProgress) return true;
  return patience_.has_value() && patience_->expired();
}

bool UcxTransport::Advance(PeerState& state) {
  const bool ended = EndReceives(state) | EndSends(state);
  const bool began = BeginReceives(state) | BeginSends(state);
  return ended || began;
}

bool UcxTransport::MaySend(const PeerState& state) const {
  if (state.send == plan_->sends.size()) return false;
  const int after = plan_->sends[state.send].after;
  return after < 0 || complete_[static_cast<size_t>(after)];
}

bool UcxTransport::BeginSends(PeerState& state) {
  bool moved = false;
  const bool has_bytes = MaySend(state) && plan_->sends[state.send].bytes > 0;
  if (!state.header_sent && (state.headers.owed || has_bytes)) {
    // The header and the pieces of messages have the same tag, so the peer matches them to its
    // receives by their order.
    const auto send = greeting_ ? &UcxWorker::SendSync : &UcxWorker::Send;
    state.sending.push_back(
        {.request = (worker_.*send)(state.peer_index, &headers_.own(), sizeof(CallHeader))});
    state.header_sent = moved = true;
  }
  while (MaySend(state) && state.sending.size() < kPiecesUnderWay) {
    const Send& message = plan_->sends[state.send];
    if (message.bytes > 0) {
      if (!state.header_sent) return true;  // the header must be sent first
      const size_t bytes = std::min(kPieceBytes, message.bytes - state.send_from);
      void* request = worker_.Send(state.peer_index, message.data + state.send_from, bytes);
      state.sending.push_back({request, state.send, state.send_from, bytes});
      state.send_from += bytes;
    }
    moved = true;
    if (state.send_from < message.bytes) continue;
    state.send = Next(plan_->sends, state.peer_index, state.send + 1);
    state.send_from = 0;
  }
  return moved;
}

bool UcxTransport::EndSends(PeerState& state) {
  bool moved = false;
  while (!state.sending.empty()) {
    const ucx::Status status = worker_.Check(state.sending.front().request);
    if (status == ucx::kInProgress) break;
    if (status != ucx::kOk) ThrowFailed(state, status);
    state.sending.erase(state.sending.begin());
    moved = true;
  }
  return moved;
}

bool UcxTransport::BeginReceives(PeerState& state) {
  bool moved = false;
  while (state.receive < plan_->receives.size() && state.receiving.size() < kPiecesUnderWay) {
    const Receive& message = plan_->receives[state.receive];
    if (message.bytes > 0) {
      PostHeader(state);
      Flight flight = {.message = state.receive, .offset = state.receive_from};
      flight.bytes = std::min(kPieceBytes, message.bytes - flight.offset);
      if (message.combine) flight.slot = TakeSlot(state);
      std::byte* into = message.combine ? flight.slot : message.data + flight.offset;
      flight.request = worker_.Receive(state.peer_index, into, flight.bytes);
      state.receiving.push_back(flight);
      state.receive_from += flight.bytes;
    } else {
      complete_[state.receive] = true;
    }
    moved = true;
    if (state.receive_from < message.bytes) continue;
    state.receive = Next(plan_->receives, state.peer_index, state.receive + 1);
    state.receive_from = 0;
  }
  if (state.headers.awaited) PostHeader(state);
  return moved;
}

void UcxTransport::PostHeader(PeerState& state) {
  if (state.header_posted) return;
  state.header_posted = true;
  void* request = worker_.Receive(state.peer_index, &state.headers.received, sizeof(CallHeader));
  state.receiving.push_back({.request = request});
}

// Completes receives in the order of posting, in which the peer sends them, so the header is
// checked first.
bool UcxTransport::EndReceives(PeerState& state) {
  bool moved = false;
  while (!state.receiving.empty()) {
    Flight& flight = state.receiving.front();
    const ucx::Status status = worker_.Check(flight.request);
    if (status == ucx::kInProgress) break;
    if (status != ucx::kOk) ThrowFailed(state, status);
    if (flight.message == kHeader) {
      state.header_received = true;
      headers_.Check(state.headers, state.peer);
    } else {
      Take(state, flight);
    }
    state.receiving.erase(state.receiving.begin());
    moved = true;
  }
  return moved;
}

void UcxTransport::Take(PeerState& state, const Flight& flight) {
  const Receive& message = plan_->receives[flight.message];
  if (message.combine) {
    Combine(plan_->arithmetic, message.data + flight.offset, flight.slot,
            flight.bytes / SizeOf(plan_->arithmetic.type));
  }
  state.received = flight.offset + flight.bytes;
  if (state.received == message.bytes) complete_[flight.message] = true;
}

// Slots are reused in turn. The next one is free, because pieces complete in order.
std::byte* UcxTransport::TakeSlot(PeerState& state) {
  state.slots.resize(kPiecesUnderWay);
  std::unique_ptr<std::byte[]>& slot = state.slots[state.next_slot++ % kPiecesUnderWay];
  // The slot is not zeroed, because it is written before it is read.
  if (slot == nullptr) slot.reset(new std::byte[kPieceBytes]);
  return slot.get();
}

void UcxTransport::Wait(Deadline deadline) {
  for (PeerState* state : active_) {
    if (worker_.Failure(state->peer_index) != ucx::kOk) SetGone(*state);
  }
  if (patience_.has_value() && patience_->expired()) ThrowIfGone();
  if (!worker_.Arm()) return;
  polled_.clear();
  polled_.push_back({abort_->fd(), POLLIN, 0});
  polled_.push_back({worker_.fd(), POLLIN, 0});
  // The peers no longer send anything over these connections, so a readable connection has been
  // closed.
  for (const PeerState* state : active_) {
    polled_.push_back({state->gone ? -1 : state->connection.fd(), POLLIN, 0});
  }
  const int nap_ms =
      Deadline::After(std::min(kLongestSleep, deadline.remaining())).poll_timeout_ms();
  const int ready = ::poll(polled_.data(), polled_.size(), nap_ms);
  abort_->ThrowIfRaised();
  if (ready < 0 && errno != EINTR) ThrowErrno(errno, "cannot wait for other ranks");
  for (size_t i = 0; i < active_.size() && ready > 0; ++i) {
    if (polled_[i + 2].revents != 0) SetGone(*active_[i]);
  }
  if (deadline.expired()) ThrowLate();
}

void UcxTransport::SetGone(PeerState& state) {
  if (state.gone) return;
  state.gone = true;
  patience_ = Deadline::After(kPatience);
}

void UcxTransport::ThrowIfGone() {
  for (const PeerState* state : active_) {
    if (!state->gone || Done(*state)) continue;
    const ucx::Status failure = worker_.Failure(state->peer_index);
    if (failure != ucx::kOk) ThrowFailed(*state, failure);
    Throw(ErrorCode::kUnavailable, "{} closed the connection", state->peer.name());
  }
}

void UcxTransport::ThrowFailed(const PeerState& state, ucx::Status status) const {
  Throw(ErrorCode::kUnavailable, "{} closed the connection, or is no longer reachable by RDMA ({})",
        state.peer.name(), worker_.Text(status));
}

void UcxTransport::ThrowLate() const {
  for (const PeerState* state : active_) {
    if (state->receive == plan_->receives.size() && state->receiving.empty()) continue;
    if (!state->header_received) {
      Throw(ErrorCode::kDeadlineExceeded, "{} had sent nothing before the deadline",
            state->peer.name());
    }
    // Describes the first incomplete message.
    const size_t message =
        state->receiving.empty() ? state->receive : state->receiving.front().message;
    const size_t came =
        state->receiving.empty() ? state->receive_from : state->receiving.front().offset;
    Throw(ErrorCode::kDeadlineExceeded, "{} had sent {} of {} bytes at the deadline",
          state->peer.name(), came, plan_->receives[message].bytes);
  }
  for (const PeerState* state : active_) {
    if (Done(*state)) continue;
    Throw(ErrorCode::kDeadlineExceeded, "{} had not received all data at the deadline",
          state->peer.name());
  }
  Throw(ErrorCode::kDeadlineExceeded,
        "the data sent to {} peers had not been flushed at the deadline", active_.size());
}

}  // namespace hearth::collective
