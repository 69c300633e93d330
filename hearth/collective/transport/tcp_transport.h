#pragma once

#include <poll.h>

#include <memory>
#include <vector>

#include "hearth/collective/operation/abort_signal.h"
#include "hearth/collective/operation/bounded_yields.h"
#include "hearth/collective/operation/peer.h"
#include "hearth/collective/transport/call_headers.h"
#include "hearth/collective/transport/peer_stream.h"
#include "hearth/collective/transport/transport.h"

namespace hearth::collective {

// Messages over TCP, unencrypted or with TLS: the calling thread sends, receives and sums while
// bytes arrive. Spins briefly, then waits in poll(2).
class TcpTransport : public Transport {
 public:
  // `streams[i]` is connected to `peers[i]`; null for `self`. `ranks_of_host` is the number of
  // ranks on this host, including this one; if 0, it is counted from the peers with this rank's
  // address.
  TcpTransport(std::vector<std::unique_ptr<PeerStream>> streams, const std::vector<Peer>& peers,
               int self, std::shared_ptr<AbortSignal> abort, int ranks_of_host = 0);

  int size() const override { return size_; }
  int self() const override { return self_; }
  void Begin(const Call& call) override;
  void BeginPair(const Call& call, int peer) override;
  void Run(const Plan& plan, Deadline deadline) override;
  std::string DepartedRank() override;
  void Close() override;

 private:
  // One peer's connection and the progress of its messages in the running plan.
  struct PeerState {
    PeerState(std::unique_ptr<PeerStream> open, int index, Peer who)
        : stream(std::move(open)), peer_index(index), peer(std::move(who)) {}
    std::unique_ptr<PeerStream> stream;
    int peer_index;
    Peer peer;
    // State of the running call.
    size_t header_sent = 0;
    size_t header_received = 0;
    int wake_up_bytes = 1;  // bytes that must have arrived to end a sleep
    PeerHeaders headers;
    std::unique_ptr<std::byte[]> slot;  // received bytes to be summed
    size_t slot_used = 0;               // bytes of an element that has not fully arrived
    size_t send = 0;  // index of the next message in the plan; the plan's size when done
    size_t sent = 0;
    size_t receive = 0;
    size_t received = 0;
  };

  // Run calls Start, then Advance for each active peer until AllDone, and Wait if no peer makes
  // progress.
  void Start(const Plan& plan);
  bool AllDone() const;
  // Sends and receives as much as the socket allows; returns true if it made progress.
  bool Advance(PeerState& state);
  bool SendSome(PeerState& state);
  size_t SendFrom(PeerState& state, const Send& message);
  bool ReceiveSome(PeerState& state);
  size_t ReceiveInto(PeerState& state, const Receive& message);
  // True while messages or a header remain, including messages that may not be sent yet.
  bool Sending(const PeerState& state) const;
  bool Receiving(const PeerState& state) const;
  void SetWakeUp(PeerState& state) const;
  void Wait(Deadline deadline);
  // True if there is a next message and it does not depend on an incomplete receive.
  bool MaySend(const PeerState& state) const;
  // Advance to the peer's next message in the plan, starting at index `from`.
  void NextSend(PeerState& state, size_t from) const;
  void NextReceive(PeerState& state, size_t from) const;
  [[noreturn]] void ThrowLate() const;

  const int size_;
  const int self_;
  const std::shared_ptr<AbortSignal> abort_;
  CallHeaders headers_;
  std::vector<PeerState> states_;
  BoundedYields yields_;

  // State of the running plan, valid within Run.
  const Plan* plan_ = nullptr;
  std::vector<PeerState*> active_;
  std::vector<bool> complete_;  // one entry per receive of the plan
  std::vector<pollfd> polled_;
};

}  // namespace hearth::collective
