#pragma once

#include <poll.h>

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "hearth/base/socket.h"
#include "hearth/collective/operation/abort_signal.h"
#include "hearth/collective/operation/peer.h"
#include "hearth/collective/transport/call_headers.h"
#include "hearth/collective/transport/peer_stream.h"
#include "hearth/collective/transport/transport.h"
#include "hearth/collective/transport/ucx_worker.h"

namespace hearth::collective {

// Messages over RDMA, by UCX. The calling thread sends, receives and sums. The authenticated TCP
// connections are used to exchange UCX's addresses. They stay open because they report a peer's end
// at once, which RDMA alone detects only after many seconds. Spins briefly, then waits in poll(2).
class UcxTransport : public Transport {
 public:
  // `connections[i]` is connected to `peers[i]`; empty for `self`. `transports` has the format of
  // UCX_TLS. Returns once every peer has been reached; throws, naming the peer, if one cannot be
  // reached.
  UcxTransport(std::vector<std::optional<Connection>> connections, const std::vector<Peer>& peers,
               int self, std::shared_ptr<AbortSignal> abort, const std::string& transports,
               Deadline deadline);
  ~UcxTransport() override { Close(); }

  int size() const override { return size_; }
  int self() const override { return self_; }
  void Begin(const Call& call) override;
  void BeginPair(const Call& call, int peer) override;
  void Run(const Plan& plan, Deadline deadline) override;
  std::string DepartedRank() override {
    for (const PeerState& state : states_) {
      if (state.gone || HasEnded(state.connection.fd())) return state.peer.name();
    }
    return "";
  }
  void Close() override;

 private:
  // Marks a header, in place of a message's index in the plan.
  static constexpr size_t kHeader = ~size_t{0};

  // A piece of a message in flight in UCX.
  struct Flight {
    void* request = nullptr;
    size_t message = kHeader;
    size_t offset = 0;
    size_t bytes = 0;
    std::byte* slot = nullptr;  // receive buffer of a piece to be summed
  };

  // One peer and the progress of its messages in the running plan.
  struct PeerState {
    PeerState(Connection open, int index, Peer who)
        : connection(std::move(open)), peer_index(index), peer(std::move(who)) {}
    Connection connection;
    int peer_index;
    Peer peer;
    bool gone = false;  // the connection has closed
    // State of the running call.
    bool header_sent = false;
    bool header_posted = false;  // the receive of the header has been posted
    bool header_received = false;
    PeerHeaders headers;
    size_t send = 0;  // index of the next message to post; send_from is the offset in it
    size_t send_from = 0;
    size_t receive = 0;
    size_t receive_from = 0;
    size_t received = 0;  // received bytes of the current message
    std::vector<Flight> sending;
    std::vector<Flight> receiving;
    std::vector<std::unique_ptr<std::byte[]>> slots;
    size_t next_slot = 0;
  };

  void ExchangeAddresses(Deadline deadline);
  void Greet(Deadline deadline);
  void Start(const Plan& plan);
  void Carry(Deadline deadline);
  bool Done(const PeerState& state) const;
  bool AllDone() const;
  bool Advance(PeerState& state);
  bool MaySend(const PeerState& state) const;
  bool BeginSends(PeerState& state);
  bool BeginReceives(PeerState& state);
  bool EndSends(PeerState& state);
  bool EndReceives(PeerState& state);
  void Take(PeerState& state, const Flight& flight);
  std::byte* TakeSlot(PeerState& state);
  void PostHeader(PeerState& state);
  bool Flushed();
  void Wait(Deadline deadline);
  void SetGone(PeerState& state);
  void ThrowIfGone();
  [[noreturn]] void ThrowFailed(const PeerState& state, ucx::Status status) const;
  [[noreturn]] void ThrowLate() const;

  const int size_;
  const int self_;
  const std::shared_ptr<AbortSignal> abort_;
  CallHeaders headers_;
  std::vector<PeerState> states_;
  UcxWorker worker_;  // Close stops the worker before the peers' buffers are freed

  // State of the running plan.
  const Plan* plan_ = nullptr;
  std::vector<PeerState*> active_;
  std::vector<bool> complete_;  // one entry per receive of the plan
  void* flush_ = nullptr;
  bool flushing_ = false;
  bool greeting_ = false;
  std::optional<Deadline> patience_;  // deadline for data that a peer sent before it left
  std::vector<pollfd> polled_;
};

}  // namespace hearth::collective
