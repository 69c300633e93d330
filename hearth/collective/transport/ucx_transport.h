#pragma once

#include <poll.h>

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "hearth/base/socket.h"
#include "hearth/collective/common/abort_signal.h"
#include "hearth/collective/common/call_header.h"
#include "hearth/collective/common/peer.h"
#include "hearth/collective/transport/peer_stream.h"
#include "hearth/collective/transport/transport.h"
#include "hearth/collective/transport/ucx_worker.h"

namespace hearth::collective {

// Messages over RDMA, by UCX: the calling thread sends, receives and sums. The authenticated tcp
// connections stay open: they carried UCX's addresses, and they report a peer's end at once, which
// RDMA alone detects only after many seconds. Spins briefly, then waits in poll(2).
class UcxTransport : public Transport {
 public:
  // `connections` and `peers` by index, as for TcpTransport; `transports` as in UCX_TLS. Returns
  // once every peer has been reached; throws, naming the peer, if one is not.
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
    for (const Lane& lane : lanes_) {
      if (lane.gone || HasEnded(lane.connection.fd())) return lane.peer.name();
    }
    return "";
  }
  void Close() override;

 private:
  static constexpr size_t kHeader = ~size_t{0};  // in place of a message's index in the plan

  // A piece of a message in flight in UCX.
  struct Flight {
    void* request = nullptr;
    size_t message = kHeader;
    size_t offset = 0;
    size_t bytes = 0;
    std::byte* slot = nullptr;  // receive buffer of a piece to be summed
  };

  // One peer and the progress of its messages in the running plan.
  struct Lane {
    Lane(Connection open, int index, Peer who)
        : connection(std::move(open)), peer_index(index), peer(std::move(who)) {}
    Connection connection;
    int peer_index;
    Peer peer;
    bool gone = false;  // the connection has closed
    // State of the running call.
    bool header_sent = false;
    bool header_asked = false;  // its receive has been posted
    bool header_came = false;
    bool owes_header = false;  // as in TcpTransport
    bool awaits_header = false;
    uint64_t pair_sends = 0;
    uint64_t pair_receives = 0;
    CallHeader header;  // the peer's
    size_t send = 0;    // next message to post, and the offset in it
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
  bool Done(const Lane& lane) const;
  bool AllDone() const;
  bool Advance(Lane& lane);
  bool MaySend(const Lane& lane) const;
  bool BeginSends(Lane& lane);
  bool BeginReceives(Lane& lane);
  bool EndSends(Lane& lane);
  bool EndReceives(Lane& lane);
  void Take(Lane& lane, const Flight& flight);
  std::byte* TakeSlot(Lane& lane);
  void CheckHeader(const Lane& lane) const;
  void AskForHeader(Lane& lane);
  bool Flushed();
  void Wait(Deadline deadline);
  void SetGone(Lane& lane);
  void ThrowIfGone();
  [[noreturn]] void ThrowFailed(const Lane& lane, ucx::Status status) const;
  [[noreturn]] void ThrowLate() const;

  const int size_;
  const int self_;
  const std::shared_ptr<AbortSignal> abort_;
  std::vector<Lane> lanes_;
  UcxWorker worker_;  // stopped by Close before the lanes' memory is freed
  uint64_t calls_ = 0;
  CallHeader header_;

  // State of the running plan.
  const Plan* plan_ = nullptr;
  std::vector<Lane*> active_;
  std::vector<bool> complete_;  // by receive
  void* flush_ = nullptr;
  bool flushing_ = false;
  bool greeting_ = false;
  std::optional<Deadline> patience_;  // deadline for data that a peer sent before it left
  std::vector<pollfd> polled_;
};

}  // namespace hearth::collective
