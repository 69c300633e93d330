#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "hearth/base/deadline.h"
#include "hearth/base/socket.h"
#include "hearth/collective/algorithms/message_backend.h"
#include "hearth/collective/group.h"
#include "hearth/collective/operation/abort_signal.h"
#include "hearth/collective/rank_table.h"
#include "hearth/collective/shared_memory/local_ranks.h"
#include "hearth/collective/shared_memory/shared_page.h"
#include "hearth/collective/stall_watch.h"
#include "hearth/collective/step_reporter.h"
#include "hearth/collective/topology.h"
#include "hearth/collective/transport/peer_stream.h"
#include "hearth/collective/transport/tcp_mesh.h"
#include "hearth/collective/transport_choice.h"

namespace hearth::collective {

// State of a rank that is the same for every group it belongs to.
struct Identity {
  GroupOptions options;
  std::string host;
  std::shared_ptr<StepReporter> reporter;
  std::string token = {};  // empty if all ranks are threads of this process
  int generation = 0;
};

// Arguments of one process for connecting its ranks.
struct Setup {
  Identity identity;
  Gather gather;
  int process = 0;
  Deadline deadline;  // limits the connections of Connect(); `gather` has its own deadline
};

// A rank of this process that is not connected yet.
struct PendingRank {
  OwnPage page = CreateSharedPage();
  // Closed once the group is connected, so that groups that split off later can reuse the ports.
  std::unique_ptr<TcpListener> listener = nullptr;
  std::shared_ptr<AbortSignal> abort = std::make_shared<AbortSignal>();
};

// Makes a rank that listens for its peers, unless all ranks are threads of this process.
PendingRank MakePendingRank(const Identity& identity);

// Builds the groups of one process's ranks: exchanges their addresses, determines which ranks share
// memory, and connects them. Used by one thread; starts another thread per rank while it connects.
class Connector {
 public:
  // Both arguments outlive the connector. Waits for the RankInfos of all ranks. Throws as
  // `setup.gather` does.
  Connector(const Setup& setup, std::vector<PendingRank>& pending);

  // Number of calls to `gather` by the constructor and Connect() together.
  static constexpr int kGathers = 3;

  // Returns one group per rank of this process. Collective over all processes. Throws
  // kDeadlineExceeded or kUnavailable, naming the missing rank, kAborted, kPermissionDenied (TLS
  // with a peer that lacks the token), kInvalidArgument (the options exclude this topology), or as
  // `gather` does.
  std::vector<std::unique_ptr<Group>> Connect();

 private:
  // A rank whose optional connections, which only some topologies need, are not open yet.
  struct PartialRank;

  std::vector<RankInfo> OwnInfos() const;
  PartialRank ConnectPart(size_t local);
  void ConnectAll(PartialRank& partial, const PendingRank& pending);
  std::unique_ptr<LocalRanks> MakeLocalRanks(int self, PendingRank& pending);
  std::unique_ptr<Backend> MakeBackend(PartialRank& partial, PendingRank& pending);
  // `kind` distinguishes the meshes that one listener accepts.
  std::unique_ptr<MessageBackend> MakeMessages(int self, const std::vector<int>& ranks,
                                               const std::string& kind, const PendingRank& pending);
  std::vector<std::unique_ptr<PeerStream>> MakeStreams(
      std::vector<std::optional<Connection>> connections, const std::vector<Peer>& peers,
      const MeshSetup& mesh) const;
  std::unique_ptr<StallWatch> MakeStallWatch(int self) const;
  std::vector<int> AllRanks() const;
  const RankInfo& Info(int rank) const { return table_.ranks[static_cast<size_t>(rank)]; }

  const Setup& setup_;
  std::vector<PendingRank>& pending_;
  const RankTable table_;
  const Topology topology_;
  const InterHostTransport inter_host_;
  const std::string description_;
  const std::string name_;
};

}  // namespace hearth::collective
