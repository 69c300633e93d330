#include "hearth/collective/transport/ucx_transport.h"

#include <algorithm>
#include <cerrno>
#include <thread>
#include <utility>

#include "hearth/base/error.h"

namespace hearth::collective {
namespace {

// Messages are sent in pieces, so that a piece to be summed fits the second-level cache and one
// piece is in flight while another is summed. A multiple of every element size.
constexpr size_t kPieceBytes = 256 << 10;
constexpr size_t kPiecesUnderWay = 4;
constexpr int kYields = 200;
constexpr unsigned kTurnsPerLook = 64;
constexpr double kLongestSleep = 0.1;  // UCX has timers that its descriptor does not report
// The end of the tcp connection overtakes RDMA data that the peer sent before: wait this long for
// it.
constexpr double kPatience = 0.1;
constexpr uint32_t kMostAddressBytes = 1 << 16;

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
      worker_(self, size_, transports) {
  for (size_t i = 0; i < connections.size(); ++i) {
    if (!connections[i].has_value()) continue;
    lanes_.emplace_back(std::move(*connections[i]), static_cast<int>(i), peers[i]);
  }
  ExchangeAddresses(deadline);
  Greet(deadline);
}

void UcxTransport::ExchangeAddresses(Deadline deadline) {
  const std::string own = worker_.Address();
  const auto size = static_cast<uint32_t>(own.size());
  for (Lane& lane : lanes_) {
    lane.connection.Write(&size, sizeof(size), deadline);
    lane.connection.Write(own, deadline);
  }
  for (Lane& lane : lanes_) {
    try {
      uint32_t its_size = 0;
      lane.connection.Read(&its_size, sizeof(its_size), deadline);
      Require(its_size <= kMostAddressBytes, ErrorCode::kDataLoss,
              "its address has {} bytes, more than {}", its_size, kMostAddressBytes);
      std::string address(its_size, '\0');
      lane.connection.Read(address.data(), its_size, deadline);
      worker_.Connect(lane.peer_index, address);
    } catch (const Error& error) {
      throw Error(error.code(), fmt::format("connecting to {} by RDMA", lane.peer.name()), error);
    }
  }
}

// Exchanges a byte with every peer, so that broken connections fail here and not in the first
// operation. The first header is acknowledged, so that UCX completes its setup; the second round
// confirms that the peer has too. UCX 1.13 may end the process of a rank whose peer leaves in
// between.
void UcxTransport::Greet(Deadline deadline) {
  std::vector<std::byte> bytes(lanes_.size() + 1);
  Plan plan;
  for (size_t i = 0; i < lanes_.size(); ++i) {
    plan.sends.push_back({lanes_[i].peer_index, &bytes[lanes_.size()], 1});
    plan.receives.push_back({lanes_[i].peer_index, &bytes[i], 1});
  }
  try {
    for (const bool first : {true, false}) {
      greeting_ = first;
      Begin({});
      Run(plan, deadline);
    }
  } catch (const Error& error) {
    throw Error(error.code(), "connecting by RDMA", error);
  }
}

// If every rank agrees with the previous one, all agree.
void UcxTransport::Begin(const Call& call) {
  header_ = CallHeader(call, ++calls_);
  for (Lane& lane : lanes_) {
    lane.header_sent = lane.header_asked = lane.header_came = false;
    lane.owes_header = lane.peer_index == (self_ + 1) % size_;
    lane.awaits_header = lane.peer_index == (self_ + size_ - 1) % size_;
  }
}

void UcxTransport::BeginPair(const Call& call, int peer) {
  for (Lane& lane : lanes_) {
    const bool partner = lane.peer_index == peer;
    lane.owes_header = partner && call.operation == Operation::kSend;
    lane.awaits_header = partner && call.operation == Operation::kReceive;
    if (!partner) continue;
    lane.header_sent = lane.header_asked = lane.header_came = false;
    Call both = call;
    both.operation = Operation::kSend;
    const bool sends = call.operation == Operation::kSend;
    both.root = sends ? peer : self_;
    header_ = CallHeader(both, sends ? ++lane.pair_sends : ++lane.pair_receives);
  }
}

void UcxTransport::Run(const Plan& plan, Deadline deadline) {
  Require(!worker_.stopped(), ErrorCode::kUnavailable, "the connections have been closed");
  abort_->ThrowIfRaised();
  try {
    Start(plan);
    Carry(deadline);
  } catch (...) {
    Close();  // the caller may free the memory in flight
    throw;
  }
}

void UcxTransport::Close() {
  for (Lane& lane : lanes_) lane.connection.Shutdown();
  if (worker_.stopped()) return;
  for (Lane& lane : lanes_) {
    for (Flight& flight : lane.receiving) {
      if (flight.request != nullptr && !ucx::IsError(flight.request))
        worker_.Cancel(flight.request);
    }
  }
  worker_.CloseEndpoints();
  const Deadline deadline = Deadline::After(1);
  const auto end = [&](void*& request) {
    while (worker_.Check(request) == ucx::kInProgress && !deadline.expired()) worker_.Progress();
  };
  for (Lane& lane : lanes_) {
    for (Flight& flight : lane.receiving) end(flight.request);
    for (Flight& flight : lane.sending) end(flight.request);
    lane.receiving.clear();
    lane.sending.clear();
  }
  end(flush_);
  worker_.Stop();
}

void UcxTransport::Start(const Plan& plan) {
  plan_ = &plan;
  complete_.assign(plan.receives.size(), false);
  flushing_ = false;
  active_.clear();
  for (Lane& lane : lanes_) {
    lane.send = Next(plan.sends, lane.peer_index, 0);
    lane.receive = Next(plan.receives, lane.peer_index, 0);
    lane.send_from = lane.receive_from = lane.received = 0;
    if (!Done(lane)) active_.push_back(&lane);
  }
}

bool UcxTransport::Done(const Lane& lane) const {
  return lane.send == plan_->sends.size() && lane.receive == plan_->receives.size() &&
         lane.sending.empty() && lane.receiving.empty() &&
         (!lane.owes_header || lane.header_sent) && (!lane.awaits_header || lane.header_came);
}

bool UcxTransport::AllDone() const {
  return std::all_of(active_.begin(), active_.end(), [&](const Lane* lane) { return Done(*lane); });
}

void UcxTransport::Carry(Deadline deadline) {
  if (active_.empty()) return;
  int idle = 0;
  for (unsigned turn = 1;; ++turn) {
    const bool busy = worker_.Progress();
    bool moved = false;
    for (Lane* lane : active_) moved |= Advance(*lane);
    if (AllDone() && Flushed()) return;
    if (turn % kTurnsPerLook == 0 && deadline.expired()) ThrowLate();
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

// Some UCX transports send only while their owner makes progress, and the caller is about to do
// other work. The result of the flush does not matter: a peer that has left had received what it
// waited for.
bool UcxTransport::Flushed() {
  if (!flushing_ && flush_ == nullptr) flush_ = worker_.Flush();
  flushing_ = true;
  if (worker_.Check(flush_) != ucx::kInProgress) return true;
  return patience_.has_value() && patience_->expired();
}

bool UcxTransport::Advance(Lane& lane) {
  const bool ended = EndReceives(lane) | EndSends(lane);
  const bool began = BeginReceives(lane) | BeginSends(lane);
  return ended || began;
}

bool UcxTransport::MaySend(const Lane& lane) const {
  if (lane.send == plan_->sends.size()) return false;
  const int after = plan_->sends[lane.send].after;
  return after < 0 || complete_[static_cast<size_t>(after)];
}

bool UcxTransport::BeginSends(Lane& lane) {
  bool moved = false;
  const bool has_bytes = MaySend(lane) && plan_->sends[lane.send].bytes > 0;
  if (!lane.header_sent && (lane.owes_header || has_bytes)) {
    const auto send = greeting_ ? &UcxWorker::SendSync : &UcxWorker::Send;
    lane.sending.push_back(
        {.request = (worker_.*send)(lane.peer_index, &header_, sizeof(header_))});
    lane.header_sent = moved = true;
  }
  while (MaySend(lane) && lane.sending.size() < kPiecesUnderWay) {
    const Send& message = plan_->sends[lane.send];
    if (message.bytes > 0) {
      if (!lane.header_sent) return true;  // only now connected: its header goes first
      const size_t bytes = std::min(kPieceBytes, message.bytes - lane.send_from);
      void* request = worker_.Send(lane.peer_index, message.data + lane.send_from, bytes);
      lane.sending.push_back({request, lane.send, lane.send_from, bytes});
      lane.send_from += bytes;
    }
    moved = true;
    if (lane.send_from < message.bytes) continue;
    lane.send = Next(plan_->sends, lane.peer_index, lane.send + 1);
    lane.send_from = 0;
  }
  return moved;
}

bool UcxTransport::EndSends(Lane& lane) {
  bool moved = false;
  while (!lane.sending.empty()) {
    const ucx::Status status = worker_.Check(lane.sending.front().request);
    if (status == ucx::kInProgress) break;
    if (status != ucx::kOk) ThrowFailed(lane, status);
    lane.sending.erase(lane.sending.begin());
    moved = true;
  }
  return moved;
}

bool UcxTransport::BeginReceives(Lane& lane) {
  bool moved = false;
  while (lane.receive < plan_->receives.size() && lane.receiving.size() < kPiecesUnderWay) {
    const Receive& message = plan_->receives[lane.receive];
    if (message.bytes > 0) {
      AskForHeader(lane);
      Flight flight = {.message = lane.receive, .offset = lane.receive_from};
      flight.bytes = std::min(kPieceBytes, message.bytes - flight.offset);
      if (message.combine) flight.slot = TakeSlot(lane);
      std::byte* into = message.combine ? flight.slot : message.data + flight.offset;
      flight.request = worker_.Receive(lane.peer_index, into, flight.bytes);
      lane.receiving.push_back(flight);
      lane.receive_from += flight.bytes;
    } else {
      complete_[lane.receive] = true;
    }
    moved = true;
    if (lane.receive_from < message.bytes) continue;
    lane.receive = Next(plan_->receives, lane.peer_index, lane.receive + 1);
    lane.receive_from = 0;
  }
  if (lane.awaits_header) AskForHeader(lane);
  return moved;
}

void UcxTransport::AskForHeader(Lane& lane) {
  if (lane.header_asked) return;
  lane.header_asked = true;
  void* request = worker_.Receive(lane.peer_index, &lane.header, sizeof(lane.header));
  lane.receiving.push_back({.request = request});
}

// In the order of posting, which is the peer's order: the header is checked first.
bool UcxTransport::EndReceives(Lane& lane) {
  bool moved = false;
  while (!lane.receiving.empty()) {
    Flight& flight = lane.receiving.front();
    const ucx::Status status = worker_.Check(flight.request);
    if (status == ucx::kInProgress) break;
    if (status != ucx::kOk) ThrowFailed(lane, status);
    if (flight.message == kHeader) {
      lane.header_came = true;
      CheckHeader(lane);
    } else {
      Take(lane, flight);
    }
    lane.receiving.erase(lane.receiving.begin());
    moved = true;
  }
  return moved;
}

void UcxTransport::Take(Lane& lane, const Flight& flight) {
  const Receive& message = plan_->receives[flight.message];
  if (message.combine) {
    Combine(plan_->arithmetic, message.data + flight.offset, flight.slot,
            flight.bytes / SizeOf(plan_->arithmetic.type));
  }
  lane.received = flight.offset + flight.bytes;
  if (lane.received == message.bytes) complete_[flight.message] = true;
}

// Slots are reused in turn: pieces complete in order, so the next slot has been summed.
std::byte* UcxTransport::TakeSlot(Lane& lane) {
  lane.slots.resize(kPiecesUnderWay);
  std::unique_ptr<std::byte[]>& slot = lane.slots[lane.next_slot++ % kPiecesUnderWay];
  if (slot == nullptr) slot.reset(new std::byte[kPieceBytes]);  // never read before written
  return slot.get();
}

void UcxTransport::CheckHeader(const Lane& lane) const {
  Require(lane.header == header_, ErrorCode::kInvalidArgument,
          "{} called {} as its operation {} where operation {} was expected; {}", lane.peer.name(),
          lane.header.Describe(), lane.header.number, header_.number, kMatchAdvice);
}

void UcxTransport::Wait(Deadline deadline) {
  for (Lane* lane : active_) {
    if (worker_.Failure(lane->peer_index) != ucx::kOk) SetGone(*lane);
  }
  if (patience_.has_value() && patience_->expired()) ThrowIfGone();
  if (!worker_.Arm()) return;
  polled_.clear();
  polled_.push_back({abort_->fd(), POLLIN, 0});
  polled_.push_back({worker_.fd(), POLLIN, 0});
  // The peers send nothing over these connections any more; readable means closed.
  for (const Lane* lane : active_) {
    polled_.push_back({lane->gone ? -1 : lane->connection.fd(), POLLIN, 0});
  }
  const int nap_ms =
      Deadline::After(std::min(kLongestSleep, deadline.remaining())).poll_timeout_ms();
  const int ready = ::poll(polled_.data(), polled_.size(), nap_ms);
  abort_->ThrowIfRaised();
  if (ready < 0 && errno != EINTR) ThrowErrno(errno, "waiting for other ranks");
  for (size_t i = 0; i < active_.size() && ready > 0; ++i) {
    if (polled_[i + 2].revents != 0) SetGone(*active_[i]);
  }
  if (deadline.expired()) ThrowLate();
}

void UcxTransport::SetGone(Lane& lane) {
  if (lane.gone) return;
  lane.gone = true;
  patience_ = Deadline::After(kPatience);
}

void UcxTransport::ThrowIfGone() {
  for (const Lane* lane : active_) {
    if (!lane->gone || Done(*lane)) continue;
    const ucx::Status failure = worker_.Failure(lane->peer_index);
    if (failure != ucx::kOk) ThrowFailed(*lane, failure);
    Throw(ErrorCode::kUnavailable, "{} closed the connection", lane->peer.name());
  }
}

void UcxTransport::ThrowFailed(const Lane& lane, ucx::Status status) const {
  Throw(ErrorCode::kUnavailable, "{} closed the connection, or is no longer reachable by RDMA ({})",
        lane.peer.name(), worker_.Text(status));
}

void UcxTransport::ThrowLate() const {
  for (const Lane* lane : active_) {
    if (lane->receive == plan_->receives.size() && lane->receiving.empty()) continue;
    if (!lane->header_came) {
      Throw(ErrorCode::kDeadlineExceeded, "{} had not started before the deadline",
            lane->peer.name());
    }
    // The first incomplete message.
    const size_t message =
        lane->receiving.empty() ? lane->receive : lane->receiving.front().message;
    const size_t came =
        lane->receiving.empty() ? lane->receive_from : lane->receiving.front().offset;
    Throw(ErrorCode::kDeadlineExceeded, "{} had sent {} of {} bytes at the deadline",
          lane->peer.name(), came, plan_->receives[message].bytes);
  }
  for (const Lane* lane : active_) {
    if (Done(*lane)) continue;
    Throw(ErrorCode::kDeadlineExceeded, "{} had not received all data at the deadline",
          lane->peer.name());
  }
  Throw(ErrorCode::kDeadlineExceeded, "the deadline has passed");
}

}  // namespace hearth::collective
