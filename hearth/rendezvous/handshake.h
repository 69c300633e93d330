// Mutual authentication of two peers that share a token, before any other data is parsed. Messages
// of fixed size; docs/format_control.md describes the bytes. The functions come first, then both
// halves for a thread that blocks; a server of many clients (control_server.h) uses the functions.
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

// The rank that a client claims to be; if only servers have ranks, the server that it wants to
// reach.
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

// Throws kInvalidArgument if the bytes are not from a Hearth client, kPermissionDenied if they
// prove another token, service or connection (a replay).
Identity CheckClaim(const Credentials& credentials, std::string_view hello, std::string_view claim);

// The client's half. Throws kPermissionDenied if the server rejects the client or fails to
// authenticate, kDeadlineExceeded or kUnavailable as Connection does. The deadline limits the whole
// handshake, also if the peer sends byte by byte.
void OfferHandshake(Connection& connection, const Credentials& credentials, Identity identity,
                    Deadline deadline);
// The server's half, which accepts only clients with this `identity`. Throws as CheckClaim does,
// kPermissionDenied for another identity, which is also sent to the client, and as Connection does.
void AcceptHandshake(Connection& connection, const Credentials& credentials, Identity identity,
                     Deadline deadline);

}  // namespace hearth::rendezvous
