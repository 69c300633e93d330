#include "hearth/rendezvous/handshake.h"

#include <utility>

#include "hearth/base/error.h"
#include "hearth/base/hmac.h"
#include "hearth/rendezvous/frame.h"

namespace hearth::rendezvous {
namespace {

constexpr std::string_view kMagic = "HEARTH1\n";
constexpr size_t kClaimProofAt = kClaimBytes - kDigestBytes;
constexpr size_t kVerdictProofAt = kVerdictBytes - kDigestBytes;
constexpr std::string_view kClient = "client";
constexpr std::string_view kServer = "server";

std::string Join(std::string_view a, std::string_view b, std::string_view c = {}) {
  std::string bytes;
  bytes.reserve(a.size() + b.size() + c.size());
  return bytes.append(a).append(b).append(c);
}

// Returns the verdict of a response with a valid proof. Checks the proof first: otherwise another
// program could make a rank report that its generation is wrong.
Verdict ReadVerdict(const Credentials& credentials, std::string_view hello, std::string_view claim,
                    std::string_view answer, const std::string& peer) {
  const std::string_view body = answer.substr(0, kVerdictProofAt);
  const std::string proof = credentials.Prove(kServer, Join(hello, claim, body));
  Require(ConstantTimeEqual(proof, answer.substr(kVerdictProofAt)), ErrorCode::kPermissionDenied,
          "{} failed to authenticate with the token; another program may be listening on that port",
          peer);
  return static_cast<Verdict>(body[0]);
}

void RequireAccepted(Verdict verdict, uint32_t server_generation, Identity identity,
                     const std::string& peer) {
  switch (verdict) {
    case Verdict::kAccepted:
      return;
    case Verdict::kOtherGeneration:
      Throw(ErrorCode::kPermissionDenied,
            "{} rejected rank {} of generation {}: it serves generation {}", peer, identity.rank,
            identity.generation, server_generation);
    case Verdict::kUnknownRank:
      Throw(ErrorCode::kPermissionDenied, "{} rejected rank {}: there is no such rank", peer,
            identity.rank);
    case Verdict::kRankTaken:
      Throw(ErrorCode::kPermissionDenied, "{} rejected rank {}: that rank has already joined", peer,
            identity.rank);
  }
  Throw(ErrorCode::kPermissionDenied, "{} rejected rank {} for an unknown reason", peer,
        identity.rank);
}

}  // namespace

Credentials::Credentials(std::string_view token, std::string service)
    : service_(std::move(service)) {
  Require(token.size() == 2 * kDigestBytes, ErrorCode::kInvalidArgument,
          "the token must have {} hex digits, not {} characters", 2 * kDigestBytes, token.size());
  key_ = HexDecode(token);
}

// Returns HMAC(token, side 0 service 0 transcript). The transcript contains a nonce of each peer,
// so a proof is valid for one connection only. `side` prevents an attacker from sending a peer's
// own proof back to it.
std::string Credentials::Prove(std::string_view side, std::string_view transcript) const {
  const std::string zero(1, '\0');
  return HmacSha256(key_, Join(Join(side, zero), Join(service_, zero), transcript));
}

std::string MakeHello(std::string_view nonce) { return Join(kMagic, nonce); }

std::string MakeClaim(const Credentials& credentials, std::string_view hello,
                      std::string_view nonce, Identity identity) {
  const std::string body =
      Join(Join(kMagic, nonce), EncodeU32(identity.generation), EncodeU32(identity.rank));
  return Join(body, credentials.Prove(kClient, Join(hello, body)));
}

std::string MakeVerdict(const Credentials& credentials, std::string_view hello,
                        std::string_view claim, Verdict verdict, uint32_t generation) {
  const std::string body = Join(std::string(1, static_cast<char>(verdict)), EncodeU32(generation));
  return Join(body, credentials.Prove(kServer, Join(hello, claim, body)));
}

Identity CheckClaim(const Credentials& credentials, std::string_view hello,
                    std::string_view claim) {
  Require(claim.size() == kClaimBytes && claim.starts_with(kMagic), ErrorCode::kInvalidArgument,
          "the client did not send Hearth's handshake");
  const std::string_view body = claim.substr(0, kClaimProofAt);
  const std::string proof = credentials.Prove(kClient, Join(hello, body));
  Require(ConstantTimeEqual(proof, claim.substr(kClaimProofAt)), ErrorCode::kPermissionDenied,
          "the client's proof is for another token or an earlier connection");
  return {DecodeU32(body.substr(kMagic.size() + kNonceBytes)),
          DecodeU32(body.substr(kMagic.size() + kNonceBytes + 4))};
}

void OfferHandshake(Connection& connection, const Credentials& credentials, Identity identity,
                    Deadline deadline) {
  std::string hello(kHelloBytes, '\0');
  connection.Read(hello.data(), hello.size(), deadline);
  // Checked before this client sends anything, so that another program on that port learns nothing.
  Require(hello.starts_with(kMagic), ErrorCode::kPermissionDenied,
          "{} does not use Hearth's protocol; check host and port", connection.peer());
  const std::string claim = MakeClaim(credentials, hello, RandomBytes(kNonceBytes), identity);
  connection.Write(claim, deadline);
  std::string answer(kVerdictBytes, '\0');
  try {
    connection.Read(answer.data(), answer.size(), deadline);
  } catch (const Error& error) {
    // kUnavailable here means that the proof was rejected: the server closes without an answer.
    if (error.code() != ErrorCode::kUnavailable) throw;
    Throw(ErrorCode::kPermissionDenied, "{} rejected the token of rank {}", connection.peer(),
          identity.rank);
  }
  const Verdict verdict = ReadVerdict(credentials, hello, claim, answer, connection.peer());
  RequireAccepted(verdict, DecodeU32(answer.substr(1)), identity, connection.peer());
}

void AcceptHandshake(Connection& connection, const Credentials& credentials, Identity identity,
                     Deadline deadline) {
  const std::string hello = MakeHello(RandomBytes(kNonceBytes));
  connection.Write(hello, deadline);
  std::string claim(kClaimBytes, '\0');
  connection.Read(claim.data(), claim.size(), deadline);
  // CheckClaim throws before an answer is sent. A client that knows the token gets a verdict even
  // if it is rejected.
  const Identity client = CheckClaim(credentials, hello, claim);
  Verdict verdict = Verdict::kAccepted;
  if (client.generation != identity.generation) {
    verdict = Verdict::kOtherGeneration;
  } else if (client.rank != identity.rank) {
    verdict = Verdict::kUnknownRank;
  }
  connection.Write(MakeVerdict(credentials, hello, claim, verdict, identity.generation), deadline);
  Require(verdict == Verdict::kAccepted, ErrorCode::kPermissionDenied,
          "{} expects rank {} of generation {}, but this is rank {} of generation {}",
          connection.peer(), client.rank, client.generation, identity.rank, identity.generation);
}

}  // namespace hearth::rendezvous
