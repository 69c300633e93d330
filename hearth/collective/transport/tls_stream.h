// TLS 1.3 with a pre-shared key between two ranks, without certificates. Each connection derives
// its keys from a key exchange (ECDHE), so that recorded traffic stays unreadable if the token
// leaks later.
#pragma once

#include <memory>
#include <string>

#include "hearth/base/deadline.h"
#include "hearth/base/socket.h"
#include "hearth/collective/operation/peer.h"
#include "hearth/collective/transport/peer_stream.h"

namespace hearth::collective {

enum class TlsSide { kClient, kServer };

// Derives the key of one mesh from the job's token. Both sides must use the same session.
std::string TlsKey(const std::string& token, const std::string& session);

// Returns once both sides have proved that they know the key. Throws kPermissionDenied if the peer
// does not know the key, kUnavailable if the peer left, and kDeadlineExceeded, all naming the peer.
std::unique_ptr<PeerStream> MakeTlsStream(Connection connection, const Peer& peer, TlsSide side,
                                          const std::string& key, Deadline deadline);

}  // namespace hearth::collective
