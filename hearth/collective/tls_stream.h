// TLS 1.3 between two ranks that share a key; no certificates. Each connection has keys of its own
// from an exchange (ECDHE), so who learns the token later cannot read what was recorded.
#pragma once

#include <memory>
#include <string>

#include "hearth/base/deadline.h"
#include "hearth/base/socket.h"
#include "hearth/collective/peer.h"
#include "hearth/collective/peer_stream.h"

namespace hearth::collective {

enum class TlsSide { kClient, kServer };

// A key for TLS from the job's token, for one mesh. Both sides must derive it from the same.
std::string TlsKey(const std::string& token, const std::string& session);

// Returns once both sides have proved that they know the key. Throws kPermissionDenied where the
// peer does not, kUnavailable where it left, and kDeadlineExceeded, all naming it.
std::unique_ptr<PeerStream> MakeTlsStream(Connection connection, const Peer& peer, TlsSide side,
                                          const std::string& key, Deadline deadline);

}  // namespace hearth::collective
