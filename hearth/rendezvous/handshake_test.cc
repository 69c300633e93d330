#include "hearth/rendezvous/handshake.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "hearth/base/hmac.h"
#include "hearth/rendezvous/cluster_testing.h"

namespace hearth::rendezvous {
namespace {

using testing::HasSubstr;

const std::string kToken(64, '5');
constexpr Identity kRank1 = {.generation = 3, .rank = 1};

Deadline Soon() { return Deadline::After(5); }

// Runs both halves against each other; gives what each side threw.
struct Outcome {
  std::string client, server;
  Identity identity;
};

Outcome Shake(const Credentials& client, const Credentials& server, uint32_t generation) {
  auto [near, far] = Connection::Pair();
  Outcome outcome;
  Thread thread("server", [&, &far = far] {
    try {
      outcome.identity = AcceptHandshake(far, server, generation);
    } catch (const Error& error) {
      outcome.server = error.message();
    }
    far.Shutdown();
  });
  try {
    OfferHandshake(near, client, kRank1, Soon());
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kPermissionDenied);
    outcome.client = error.message();
  }
  near.Shutdown();
  thread.Join();
  return outcome;
}

TEST(Handshake, BothSidesAcceptTheSameToken) {
  const Credentials credentials(kToken, "control");
  const Outcome outcome = Shake(credentials, credentials, 3);
  EXPECT_EQ(outcome.client, "");
  EXPECT_EQ(outcome.server, "");
  EXPECT_EQ(outcome.identity.rank, 1u);
  EXPECT_EQ(outcome.identity.generation, 3u);
}

TEST(Handshake, AnotherTokenIsRefused) {
  const Outcome outcome =
      Shake(Credentials(NewToken(), "control"), Credentials(kToken, "control"), 3);
  EXPECT_THAT(outcome.client, HasSubstr("refused the token of rank 1"));
  EXPECT_THAT(outcome.server, HasSubstr("another token"));
}

TEST(Handshake, ProofForAnotherServiceIsRefused) {
  const Outcome outcome =
      Shake(Credentials(kToken, "collective"), Credentials(kToken, "control"), 3);
  EXPECT_THAT(outcome.server, HasSubstr("another token"));
}

TEST(Handshake, OlderGenerationIsToldSo) {
  const Credentials credentials(kToken, "control");
  const Outcome outcome = Shake(credentials, credentials, 4);
  EXPECT_THAT(outcome.client, HasSubstr("generation 3: it serves generation 4"));
  EXPECT_THAT(outcome.server, HasSubstr("refused rank 1 of generation 3"));
}

TEST(Handshake, ReplayedClaimIsRefused) {
  const Credentials credentials(kToken, "control");
  const std::string hello = MakeHello(RandomBytes(32));
  const std::string claim = MakeClaim(credentials, hello, RandomBytes(32), kRank1);
  EXPECT_EQ(CheckClaim(credentials, hello, claim).rank, 1u);
  const std::string later = MakeHello(RandomBytes(32));
  EXPECT_EQ(ErrorOf([&] { CheckClaim(credentials, later, claim); }).code(),
            ErrorCode::kPermissionDenied);
}

TEST(Handshake, AnyChangedByteOfAClaimIsRefused) {
  const Credentials credentials(kToken, "control");
  const std::string hello = MakeHello(RandomBytes(32));
  const std::string claim = MakeClaim(credentials, hello, RandomBytes(32), kRank1);
  for (size_t i = 0; i < claim.size(); ++i) {
    std::string changed = claim;
    changed[i] = static_cast<char>(changed[i] ^ 1);
    EXPECT_THROW(CheckClaim(credentials, hello, changed), Error) << "byte " << i;
  }
}

TEST(Handshake, ClientRefusesAServerThatDoesNotKnowTheToken) {
  auto pair = Connection::Pair();
  Connection& near = pair.first;
  Connection& far = pair.second;
  Thread impostor("impostor", [&far] {
    far.Write(MakeHello(RandomBytes(32)), Soon());
    std::string claim(kClaimBytes, '\0');
    far.Read(claim.data(), claim.size(), Soon());
    far.Write(std::string(kVerdictBytes, '\0'), Soon());
  });
  const Credentials credentials(kToken, "control");
  const Error error = ErrorOf([&] { OfferHandshake(near, credentials, kRank1, Soon()); });
  EXPECT_EQ(error.code(), ErrorCode::kPermissionDenied);
  EXPECT_THAT(error.message(), HasSubstr("did not prove"));
}

TEST(Handshake, ClientRefusesAServerOfAnotherKind) {
  auto pair = Connection::Pair();
  Connection& near = pair.first;
  Connection& far = pair.second;
  far.Write("HTTP/1.1 400 Bad Request\r\nConnection: close\r\n\r\n", Soon());
  const Credentials credentials(kToken, "control");
  const Error error = ErrorOf([&] { OfferHandshake(near, credentials, kRank1, Soon()); });
  EXPECT_THAT(error.message(), HasSubstr("does not speak Hearth's protocol"));
}

TEST(Handshake, SilentServerIsADeadline) {
  auto pair = Connection::Pair();
  Connection& near = pair.first;
  const Credentials credentials(kToken, "control");
  const Error error =
      ErrorOf([&] { OfferHandshake(near, credentials, kRank1, Deadline::After(0.02)); });
  EXPECT_EQ(error.code(), ErrorCode::kDeadlineExceeded);
}

TEST(Credentials, RefuseATokenOfAnotherLengthWithoutRepeatingIt) {
  const Error error = ErrorOf([] { Credentials("5ec2e7", "control"); });
  EXPECT_EQ(error.code(), ErrorCode::kInvalidArgument);
  EXPECT_THAT(error.message(), testing::Not(HasSubstr("5ec2e7")));
}

}  // namespace
}  // namespace hearth::rendezvous
