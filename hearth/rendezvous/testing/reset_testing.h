// A test client that resets its connection at a stage of the handshake.
#pragma once

#include <sys/socket.h>

#include <string>
#include <utility>

#include "hearth/base/hmac.h"
#include "hearth/base/socket.h"
#include "hearth/rendezvous/handshake.h"

namespace hearth::rendezvous {

enum class ResetStage { kBeforeHello, kInTheProof, kAfterTheProof };

// Closes the connection by RST instead of FIN.
inline void Reset(Connection connection) {
  const linger none = {.l_onoff = 1, .l_linger = 0};
  ::setsockopt(connection.fd(), SOL_SOCKET, SO_LINGER, &none, sizeof(none));
}

// Acts as a client without the token up to the stage, then resets the connection.
inline void ResetAt(ResetStage stage, Connection connection) {
  if (stage != ResetStage::kBeforeHello) {
    const Deadline soon = Deadline::After(5);
    std::string hello(kHelloBytes, '\0');
    connection.Read(hello.data(), hello.size(), soon);
    const Credentials wrong(NewToken(), kControlService);
    const std::string claim = MakeClaim(wrong, hello, RandomBytes(32), {0, 1});
    const bool whole = stage == ResetStage::kAfterTheProof;
    connection.Write(whole ? claim : claim.substr(0, claim.size() / 2), soon);
  }
  Reset(std::move(connection));
}

}  // namespace hearth::rendezvous
