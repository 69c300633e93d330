// Mutual authentication of two peers that share a token, before any other data is parsed. The
// messages have fixed sizes; docs/format_control.md describes the bytes. A server of many clients
// (control_server.h) uses the functions for single messages; a thread that may block uses
// OfferHandshake and AcceptHandshake.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "hearth/base/deadline.h"
#include "hearth/base/socket.h"

namespace hearth::rendezvous {

inline constexpr size_t kNonceBytes = 32;
inline constexpr size_t kHelloBytes = 40;    // magic, the server's nonce
inline constexpr size_t kClaimBytes = 80;    // magic, the client's nonce, generation, rank, proof
inline constexpr size_t kVerdictBytes = 37;  // verdict, the server's generation, proof

// Service name of the connections between coordinator and members.
inline constexpr const char* kControlService = "control";

// Parameters that both peers share. `service` prevents a proof for one service from being used for
// another.
class Credentials {
 public:
  // Throws kInvalidArgument unless the token is 64 hex digits; the error does not contain the
  // token.
  Credentials(std::string_view token, std::string service);
  std::string Prove(std::string_view side, std::string_view transcript) const;

 private:
  std::string key_;
  std::string service_;
};

// The rank that a client claims to be, or, if only servers have ranks, the rank of the server that
// the client wants to reach.
struct Identity {
  uint32_t generation = 0;
  uint32_t rank = 0;
};

// The server's answer, sent only to a client that knows the token.
enum class Verdict : uint8_t { kAccepted, kOtherGeneration, kUnknownRank, kRankTaken };

std::string MakeHello(std::string_view nonce);
std::string MakeClaim(const Credentials& credentials, std::string_view hello,
                      std::string_view nonce, Identity identity);
std::string MakeVerdict(const Credentials& credentials, std::string_view hello,
                        std::string_view claim, Verdict verdict, uint32_t generation);

// Checks a client's claim and returns the identity in it. Throws kInvalidArgument if the bytes are
// not from a Hearth client, kPermissionDenied if the proof is for another token, service or
// connection (a replay).
Identity CheckClaim(const Credentials& credentials, std::string_view hello, std::string_view claim);

// Client side. Throws kPermissionDenied if the server rejects the client or fails to authenticate,
// and the errors of Connection, such as kDeadlineExceeded and kUnavailable. The deadline limits the
// whole handshake, even if the peer sends it byte by byte.
void OfferHandshake(Connection& connection, const Credentials& credentials, Identity identity,
                    Deadline deadline);
// Server side; accepts only clients with this `identity`. Throws the errors of CheckClaim and
// Connection, and kPermissionDenied for another identity, of which the client is notified.
void AcceptHandshake(Connection& connection, const Credentials& credentials, Identity identity,
                     Deadline deadline);

}  // namespace hearth::rendezvous
