#pragma once

#include <poll.h>

#include <memory>
#include <vector>

#include "hearth/collective/common/abort_signal.h"
#include "hearth/collective/common/call_header.h"
#include "hearth/collective/common/peer.h"
#include "hearth/collective/transport/peer_stream.h"
#include "hearth/collective/transport/transport.h"

namespace hearth::collective {

// Messages over tcp, unencrypted or by TLS: the calling thread sends, receives and sums while bytes
// arrive. Spins briefly, then waits in poll(2).
class TcpTransport : public Transport {
 public:
  // `streams` and `peers` by index; `self` has no stream.
  TcpTransport(std::vector<std::unique_ptr<PeerStream>> streams, const std::vector<Peer>& peers,
               int self, std::shared_ptr<AbortSignal> abort);

  int size() const override { return size_; }
  int self() const override { return self_; }
  void Begin(const Call& call) override;
  void BeginPair(const Call& call, int peer) override;
  void Run(const Plan& plan, Deadline deadline) override;
  std::string DepartedRank() override;
  void Close() override;

 private:
  // One peer's connection and the progress of its messages in the running plan.
  struct Lane {
    Lane(std::unique_ptr<PeerStream> open, int index, Peer who)
        : stream(std::move(open)), peer_index(index), peer(std::move(who)) {}
    std::unique_ptr<PeerStream> stream;
    int peer_index;
    Peer peer;
    // State of the running call.
    size_t header_sent = 0;
    size_t header_received = 0;
    bool owes_header = false;    // also if no message is sent: to the next rank
    bool awaits_header = false;  // also if no message is received: from the previous rank
    int wake_up_bytes = 1;       // bytes that must have arrived to end a sleep
    uint64_t pair_sends = 0;     // calls with this peer alone, like pair_receives
    uint64_t pair_receives = 0;
    CallHeader header;                  // the peer's
    std::unique_ptr<std::byte[]> slot;  // received bytes to be summed
    size_t slot_used = 0;               // start of an element that has not fully arrived
    size_t send = 0;                    // index in the plan; its size when done
    size_t sent = 0;
    size_t receive = 0;
    size_t received = 0;
  };

  void Start(const Plan& plan);
  bool AllDone() const;
  bool Advance(Lane& lane);
  bool Sending(const Lane& lane) const;
  bool Receiving(const Lane& lane) const;
  bool SendSome(Lane& lane);
  size_t SendFrom(Lane& lane, const Send& message);
  bool ReceiveSome(Lane& lane);
  size_t ReceiveInto(Lane& lane, const Receive& message);
  void CheckHeader(const Lane& lane) const;
  void SetWakeUp(Lane& lane) const;
  void Wait(Deadline deadline);
  bool MaySend(const Lane& lane) const;
  void NextSend(Lane& lane, size_t from) const;
  void NextReceive(Lane& lane, size_t from) const;
  [[noreturn]] void ThrowLate() const;

  const int size_;
  const int self_;
  const std::shared_ptr<AbortSignal> abort_;
  std::vector<Lane> lanes_;
  uint64_t calls_ = 0;
  CallHeader header_;

  // State of the running plan.
  const Plan* plan_ = nullptr;
  std::vector<Lane*> active_;
  std::vector<bool> complete_;  // by receive
  std::vector<pollfd> polled_;
};

}  // namespace hearth::collective
