// Builds the groups of the ranks of one process: exchanges who and where they are, finds out who
// shares memory, and connects. Used by one thread; runs one more per rank while it connects. Throws
// kDeadlineExceeded and kUnavailable, naming the rank that did not come, and kAborted.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "hearth/base/deadline.h"
#include "hearth/base/socket.h"
#include "hearth/collective/abort_signal.h"
#include "hearth/collective/group.h"
#include "hearth/collective/local_ranks.h"
#include "hearth/collective/message_backend.h"
#include "hearth/collective/peer_stream.h"
#include "hearth/collective/roll_call.h"
#include "hearth/collective/roster.h"
#include "hearth/collective/shared_page.h"
#include "hearth/collective/stall_watch.h"
#include "hearth/collective/tcp_mesh.h"
#include "hearth/collective/topology.h"
#include "hearth/collective/transport_choice.h"

namespace hearth::collective {

// What a rank knows of itself whichever group it is in.
struct Identity {
  GroupOptions options;
  std::string host;
  std::shared_ptr<RollCall> roll;
  std::string token = {};  // empty: all ranks are threads of this process
  int generation = 0;
};

// What one process needs to connect its ranks.
struct Setup {
  Identity identity;
  Gather gather;
  int process = 0;
  Deadline deadline;
};

// One rank of this process on its way to a Group.
struct Draft {
  OwnPage page = CreateSharedPage();
  // Open only until the group is connected: groups that split off later use the same ports again.
  std::unique_ptr<TcpListener> listener = nullptr;
  std::shared_ptr<AbortSignal> abort = std::make_shared<AbortSignal>();
};

// Listening where the peers can reach it, unless all ranks are threads of this process.
Draft MakeDraft(const Identity& identity);

class Connector {
 public:
  // Both outlive it.
  Connector(const Setup& setup, std::vector<Draft>& drafts);

  // One group per draft. All processes call it together.
  std::vector<std::unique_ptr<Group>> Connect();

 private:
  // A rank before it has the connections that only some wirings need.
  struct Half;

  std::vector<RankInfo> OwnInfos() const;
  Half ConnectHalf(size_t local);
  void ConnectAll(Half& half, const Draft& draft);
  std::unique_ptr<LocalRanks> MakeLocalRanks(int self, Draft& draft);
  std::unique_ptr<Backend> MakeBackend(Half& half, Draft& draft);
  // `kind` differs between the meshes that one listener accepts.
  std::unique_ptr<MessageBackend> MakeMessages(int self, const std::vector<int>& ranks,
                                               const std::string& kind, const Draft& draft);
  std::vector<std::unique_ptr<PeerStream>> MakeStreams(
      std::vector<std::optional<Connection>> connections, const std::vector<Peer>& peers,
      const MeshSetup& mesh) const;
  std::unique_ptr<StallWatch> MakeStallWatch(int self) const;
  std::vector<int> Everyone() const;
  const RankInfo& Info(int rank) const { return roster_.ranks[static_cast<size_t>(rank)]; }

  const Setup& setup_;
  std::vector<Draft>& drafts_;
  const Roster roster_;
  const Topology topology_;
  const Between between_;
  const std::string description_;
  const std::string name_;
};

}  // namespace hearth::collective
