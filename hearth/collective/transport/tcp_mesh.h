// Connects every pair of ranks of a set over TCP, with mutual authentication.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "hearth/base/deadline.h"
#include "hearth/base/socket.h"
#include "hearth/collective/operation/abort_signal.h"
#include "hearth/collective/operation/peer.h"
#include "hearth/rendezvous/handshake.h"

namespace hearth::collective {

// A rank of a mesh, and the address at which it listens.
struct MeshRank {
  Peer peer;
  std::string address;
  int port = 0;
};

// Arguments of ConnectMesh, equal on all ranks except `self`.
struct MeshSetup {
  std::vector<MeshRank> ranks = {};  // by ascending rank
  int self = 0;                      // index of this rank
  std::string token = {};
  // Unique per mesh, so that recorded proofs cannot be replayed. The same on all ranks.
  std::string session;
  int generation = 0;

  // True if all ranks listen at the same address. The result is the same on all ranks.
  bool one_host() const;
};

// Connects to lower ranks and accepts connections of higher ones. Returns one connection per rank,
// except for this rank. Clients that fail the handshake or are too slow are dropped and counted in
// the log. Throws kDeadlineExceeded or kUnavailable, naming a peer, or kAborted.
std::vector<std::optional<Connection>> ConnectMesh(const MeshSetup& setup, TcpListener& listener,
                                                   const AbortSignal& abort, Deadline deadline);

}  // namespace hearth::collective
