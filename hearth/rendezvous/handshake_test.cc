#include "hearth/rendezvous/handshake.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <future>
#include <string>

#include "hearth/base/hmac.h"
#include "hearth/base/testing/deadline_testing.h"
#include "hearth/rendezvous/testing/cluster_testing.h"

namespace hearth::rendezvous {
namespace {

using testing::HasSubstr;

const std::string kToken(64, '5');
constexpr Identity kRank1 = {.generation = 3, .rank = 1};

// Error messages of both sides of a handshake; empty if there was no error.
struct Outcome {
  std::string client, server;
};

Outcome Shake(const Credentials& client, const Credentials& server, Identity expected) {
  auto [local, remote] = Connection::Pair();
  Outcome outcome;
  Thread thread("server", [&, &remote = remote] {
    try {
      AcceptHandshake(remote, server, expected, Soon());
    } catch (const Error& error) {
      outcome.server = error.message();
    }
    remote.Shutdown();
  });
  try {
    OfferHandshake(local, client, kRank1, Soon());
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kPermissionDenied);
    outcome.client = error.message();
  }
  local.Shutdown();
  thread.Join();
  return outcome;
}

TEST(Handshake, BothSidesAcceptTheSameToken) {
  const Credentials credentials(kToken, "control");
  const Outcome outcome = Shake(credentials, credentials, kRank1);
  EXPECT_EQ(outcome.client, "");
  EXPECT_EQ(outcome.server, "");
}

TEST(Handshake, AnotherTokenIsRejected) {
  const Outcome outcome =
      Shake(Credentials(NewToken(), "control"), Credentials(kToken, "control"), kRank1);
  EXPECT_THAT(outcome.client, HasSubstr("rejected the token of rank 1"));
  EXPECT_THAT(outcome.server, HasSubstr("another token"));
}

TEST(Handshake, AProofForAnotherServiceIsRejected) {
  const Outcome outcome =
      Shake(Credentials(kToken, "collective"), Credentials(kToken, "control"), kRank1);
  EXPECT_THAT(outcome.server, HasSubstr("another token"));
}

TEST(Handshake, AnOlderGenerationGetsTheReason) {
  const Credentials credentials(kToken, "control");
  const Outcome outcome = Shake(credentials, credentials, {.generation = 4, .rank = 1});
  EXPECT_THAT(outcome.client, HasSubstr("generation 3: it serves generation 4"));
  EXPECT_THAT(outcome.server, HasSubstr("expects rank 1 of generation 3, but this is rank 1 of"));
}

TEST(Handshake, AnotherRankGetsTheReason) {
  const Credentials credentials(kToken, "feed");
  const Outcome outcome = Shake(credentials, credentials, {.generation = 3, .rank = 2});
  EXPECT_THAT(outcome.client, HasSubstr("rejected rank 1: there is no such rank"));
  EXPECT_THAT(outcome.server, HasSubstr("expects rank 1 of generation 3, but this is rank 2 of"));
}

TEST(Handshake, AReplayedClaimIsRejected) {
  const Credentials credentials(kToken, "control");
  const std::string hello = MakeHello(RandomBytes(32));
  const std::string claim = MakeClaim(credentials, hello, RandomBytes(32), kRank1);
  EXPECT_EQ(CheckClaim(credentials, hello, claim).rank, 1u);
  const std::string later = MakeHello(RandomBytes(32));
  EXPECT_EQ(Thrown([&] { CheckClaim(credentials, later, claim); }).code(),
            ErrorCode::kPermissionDenied);
}

TEST(Handshake, AnyChangedByteOfAClaimIsRejected) {
  const Credentials credentials(kToken, "control");
  const std::string hello = MakeHello(RandomBytes(32));
  const std::string claim = MakeClaim(credentials, hello, RandomBytes(32), kRank1);
  for (size_t i = 0; i < claim.size(); ++i) {
    std::string changed = claim;
    changed[i] = static_cast<char>(changed[i] ^ 1);
    EXPECT_THROW(CheckClaim(credentials, hello, changed), Error) << "byte " << i;
  }
}

TEST(Handshake, TheClientRejectsAServerWithoutTheToken) {
  auto pair = Connection::Pair();
  Connection& local = pair.first;
  Connection& remote = pair.second;
  Thread impostor("impostor", [&remote] {
    remote.Write(MakeHello(RandomBytes(32)), Soon());
    std::string claim(kClaimBytes, '\0');
    remote.Read(claim.data(), claim.size(), Soon());
    remote.Write(std::string(kVerdictBytes, '\0'), Soon());
  });
  const Credentials credentials(kToken, "control");
  const Error error = Thrown([&] { OfferHandshake(local, credentials, kRank1, Soon()); });
  EXPECT_EQ(error.code(), ErrorCode::kPermissionDenied);
  EXPECT_THAT(error.message(), HasSubstr("failed to authenticate"));
}

TEST(Handshake, TheClientRejectsAServerOfAnotherProtocol) {
  auto pair = Connection::Pair();
  Connection& local = pair.first;
  Connection& remote = pair.second;
  remote.Write("HTTP/1.1 400 Bad Request\r\nConnection: close\r\n\r\n", Soon());
  const Credentials credentials(kToken, "control");
  const Error error = Thrown([&] { OfferHandshake(local, credentials, kRank1, Soon()); });
  EXPECT_THAT(error.message(), HasSubstr("does not use Hearth's protocol"));
}

TEST(Handshake, ASilentServerTimesOut) {
  auto pair = Connection::Pair();
  Connection& local = pair.first;
  const Credentials credentials(kToken, "control");
  const Error error =
      Thrown([&] { OfferHandshake(local, credentials, kRank1, Deadline::After(0.02)); });
  EXPECT_EQ(error.code(), ErrorCode::kDeadlineExceeded);
}

// The peer is a client, then a server. It sends each byte in time, but its whole message would take
// eight seconds.
TEST(Handshake, TheDeadlineAppliesToPeersThatSendByteByByte) {
  const Credentials credentials(kToken, "feed");
  for (const bool server : {true, false}) {
    auto pair = Connection::Pair();
    Connection& local = pair.first;
    Connection& remote = pair.second;
    std::promise<void> over;
    Thread drip("drip", [&remote, ended = over.get_future().share()] {
      const std::string bytes = "HEARTH1\n" + std::string(72, 'x');
      for (size_t at = 0; at < 40; ++at) {
        if (ended.wait_for(std::chrono::milliseconds(200)) == std::future_status::ready) return;
        remote.TryWrite(&bytes[at], 1);
      }
    });
    const auto began = std::chrono::steady_clock::now();
    const Deadline deadline = Deadline::After(0.5);
    const Error error = Thrown(
        [&] { (server ? AcceptHandshake : OfferHandshake)(local, credentials, kRank1, deadline); });
    EXPECT_EQ(error.code(), ErrorCode::kDeadlineExceeded);
    EXPECT_LT(std::chrono::steady_clock::now() - began, std::chrono::seconds(6));
    over.set_value();
    drip.Join();
  }
}

TEST(Handshake, AClientOfAnotherProtocolGetsNoResponse) {
  auto pair = Connection::Pair();
  Connection& local = pair.first;
  Connection& remote = pair.second;
  remote.Write(std::string(kClaimBytes, 'x'), Soon());
  const Credentials credentials(kToken, "feed");
  const Error error = Thrown([&] { AcceptHandshake(local, credentials, kRank1, Soon()); });
  EXPECT_EQ(error.code(), ErrorCode::kInvalidArgument);
  local.Shutdown();
  std::string got(kHelloBytes + 1, '\0');
  remote.Read(got.data(), kHelloBytes, Soon());
  EXPECT_EQ(remote.ReadSome(got.data(), 1, Soon()), 0u);
}

TEST(Credentials, ErrorsDoNotContainTheToken) {
  const Error error = Thrown([] { Credentials("5ec2e7", "control"); });
  EXPECT_EQ(error.code(), ErrorCode::kInvalidArgument);
  EXPECT_THAT(error.message(), testing::Not(HasSubstr("5ec2e7")));
}

// Returns the client's error if the server answers a claim with this verdict.
std::string ErrorOfVerdict(Verdict verdict, const std::string& other_claim = "") {
  auto pair = Connection::Pair();
  Connection& local = pair.first;
  Connection& remote = pair.second;
  const Credentials credentials(kToken, "control");
  Thread server("server", [&] {
    const std::string hello = MakeHello(RandomBytes(32));
    remote.Write(hello, Soon());
    std::string claim(kClaimBytes, '\0');
    remote.Read(claim.data(), claim.size(), Soon());
    if (!other_claim.empty()) claim = other_claim;
    remote.Write(MakeVerdict(credentials, hello, claim, verdict, 9), Soon());
  });
  const Error error = Thrown([&] { OfferHandshake(local, credentials, kRank1, Soon()); });
  EXPECT_EQ(error.code(), ErrorCode::kPermissionDenied);
  server.Join();
  return error.message();
}

TEST(Handshake, EachRejectionHasItsReason) {
  EXPECT_THAT(ErrorOfVerdict(Verdict::kRankTaken),
              HasSubstr("rejected rank 1: that rank has already joined"));
  EXPECT_THAT(ErrorOfVerdict(Verdict::kUnknownRank),
              HasSubstr("rejected rank 1: there is no such rank"));
  EXPECT_THAT(ErrorOfVerdict(Verdict::kOtherGeneration),
              HasSubstr("rejected rank 1 of generation 3: it serves generation 9"));
  EXPECT_THAT(ErrorOfVerdict(static_cast<Verdict>(77)),
              HasSubstr("rejected rank 1 for an unknown reason"));
}

TEST(Handshake, AVerdictOnAnotherClaimIsNoProof) {
  const Credentials credentials(kToken, "control");
  const std::string claim =
      MakeClaim(credentials, MakeHello(RandomBytes(32)), RandomBytes(32), kRank1);
  EXPECT_THAT(ErrorOfVerdict(Verdict::kAccepted, claim), HasSubstr("failed to authenticate"));
}

TEST(Handshake, AClaimOfAnotherLengthIsNoHandshake) {
  const Credentials credentials(kToken, "control");
  const std::string hello = MakeHello(RandomBytes(32));
  const std::string claim = MakeClaim(credentials, hello, RandomBytes(32), kRank1);
  ASSERT_EQ(claim.size(), kClaimBytes);
  ASSERT_EQ(hello.size(), kHelloBytes);
  for (const std::string& other :
       {std::string(), claim.substr(1), claim.substr(0, 79), claim + "x"}) {
    EXPECT_EQ(CodeOf([&] { CheckClaim(credentials, hello, other); }), ErrorCode::kInvalidArgument);
  }
}

TEST(Handshake, KeepsTheLargestGenerationAndRank) {
  const Credentials credentials(kToken, "control");
  const std::string hello = MakeHello(RandomBytes(32));
  const Identity largest = {.generation = UINT32_MAX, .rank = UINT32_MAX - 1};
  const Identity got =
      CheckClaim(credentials, hello, MakeClaim(credentials, hello, RandomBytes(32), largest));
  EXPECT_EQ(got.generation, UINT32_MAX);
  EXPECT_EQ(got.rank, UINT32_MAX - 1);
}

TEST(Credentials, ProofsDependOnSideServiceAndTranscript) {
  const Credentials control(kToken, "control");
  const std::string proof = control.Prove("client", "text");
  EXPECT_EQ(Credentials(kToken, "control").Prove("client", "text"), proof);
  EXPECT_NE(control.Prove("server", "text"), proof);
  EXPECT_NE(control.Prove("client", "texts"), proof);
  EXPECT_NE(Credentials(kToken, "feed").Prove("client", "text"), proof);
  EXPECT_NE(Credentials(std::string(64, '6'), "control").Prove("client", "text"), proof);
  // Moving a character from the start of one field to the end of the previous one changes the
  // proof.
  EXPECT_NE(Credentials(kToken, "controlt").Prove("client", "ext"), proof);
}

TEST(Credentials, RejectsTokensThatAreNotHex) {
  for (const std::string& token : {std::string(63, 'a'), std::string(65, 'a'), std::string(64, 'g'),
                                   std::string(62, 'a') + "0x", std::string()}) {
    const Error error = Thrown([&] { Credentials(token, "control"); });
    EXPECT_EQ(error.code(), ErrorCode::kInvalidArgument) << token.size();
    if (token.empty()) continue;
    EXPECT_THAT(error.message(), testing::Not(HasSubstr(token)));
  }
}

}  // namespace
}  // namespace hearth::rendezvous
