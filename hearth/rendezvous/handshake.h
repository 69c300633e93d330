// Mutual authentication of two ends that share a token, before anything else is parsed. Fixed
// sizes; docs/format_control.md has the bytes. Pure functions first, then both halves for a thread
// that waits; a server of many (control_server.h) uses the pure ones.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "hearth/base/deadline.h"
#include "hearth/base/socket.h"

namespace hearth::rendezvous {

inline constexpr size_t kNonceBytes = 32;
inline constexpr size_t kHelloBytes = 40;    // magic, server nonce
inline constexpr size_t kClaimBytes = 80;    // magic, client nonce, generation, rank, proof
inline constexpr size_t kVerdictBytes = 37;  // verdict, the server's generation, proof

// The service of the connections between coordinator and members.
inline constexpr const char* kControlService = "control";

// What both ends must agree on. `service` keeps a proof for one purpose from serving another.
class Credentials {
 public:
  // Throws kInvalidArgument unless the token is 64 hex digits, without repeating it.
  Credentials(std::string_view token, std::string service);
  std::string Prove(std::string_view side, std::string_view transcript) const;

 private:
  std::string key_;
  std::string service_;
};

// Who a client claims to be; if only the servers have ranks, the server that it looks for.
struct Identity {
  uint32_t generation = 0;
  uint32_t rank = 0;
};

// The server's answer to a client that knows the token.
enum class Verdict : uint8_t { kAccepted, kOtherGeneration, kUnknownRank, kRankTaken };

std::string MakeHello(std::string_view nonce);
std::string MakeClaim(const Credentials& credentials, std::string_view hello,
                      std::string_view nonce, Identity identity);
std::string MakeVerdict(const Credentials& credentials, std::string_view hello,
                        std::string_view claim, Verdict verdict, uint32_t generation);

// Throws kInvalidArgument when the bytes do not come from a Hearth client, kPermissionDenied when
// they prove another token, service or connection (a replay).
Identity CheckClaim(const Credentials& credentials, std::string_view hello, std::string_view claim);

// The client's half. Throws kPermissionDenied when the server refuses or cannot prove itself,
// kDeadlineExceeded or kUnavailable as Connection does. The deadline is for the whole handshake: a
// peer that sends byte by byte gets no more time.
void OfferHandshake(Connection& connection, const Credentials& credentials, Identity identity,
                    Deadline deadline);
// The server's half, which takes only a client of this `identity`. Throws as CheckClaim does,
// kPermissionDenied for another identity, which the client is told, and as Connection does.
void AcceptHandshake(Connection& connection, const Credentials& credentials, Identity identity,
                     Deadline deadline);

}  // namespace hearth::rendezvous
