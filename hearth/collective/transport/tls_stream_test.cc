#include "hearth/collective/transport/tls_stream.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <openssl/evp.h>
#include <openssl/ssl.h>
#include <openssl/x509.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <future>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "hearth/base/hmac.h"
#include "hearth/base/testing/deadline_testing.h"
#include "hearth/base/testing/error_testing.h"
#include "hearth/base/thread.h"

namespace hearth::collective {
namespace {

using testing::HasSubstr;

const Peer kClient = {1, "a"};
const Peer kServer = {0, "b"};

// Returns both ends of a connection with these keys. Rethrows the error of either side; the
// server's error takes precedence.
std::pair<std::unique_ptr<PeerStream>, std::unique_ptr<PeerStream>> MakePair(
    const std::string& client_key, const std::string& server_key) {
  auto left_and_right = Connection::Pair();
  auto& left = left_and_right.first;
  auto& right = left_and_right.second;
  auto client = std::async(std::launch::async, [&, connection = std::move(left)]() mutable {
    return MakeTlsStream(std::move(connection), kServer, TlsSide::kClient, client_key, Soon());
  });
  auto server = MakeTlsStream(std::move(right), kClient, TlsSide::kServer, server_key, Soon());
  return {client.get(), std::move(server)};
}

std::string NewKey() { return TlsKey(NewToken(), "session"); }

// Sends all of `text` from one end and returns what arrives at the other, on this thread.
std::string Carry(PeerStream& from, PeerStream& to, std::string text) {
  std::string got(text.size(), '\0');
  size_t sent = 0, received = 0;
  for (const Deadline deadline = Soon(); received < got.size() && !deadline.expired();) {
    const iovec out[] = {{text.data() + sent, std::min<size_t>(3, text.size() - sent)},
                         {text.data() + std::min(sent + 3, text.size()),
                          text.size() - std::min(sent + 3, text.size())}};
    if (sent < text.size()) sent += from.Send(out);
    const iovec in[] = {{got.data() + received, got.size() - received}};
    received += to.Receive(in);
  }
  return got;
}

TEST(TlsStream, CarriesSmallAndLargeMessagesBothWays) {
  const std::string key = NewKey();
  const auto [client, server] = MakePair(key, key);
  // Less than, exactly and more than a record, and more than fits in the socket buffers.
  for (const size_t size : {1u, 4u, 16384u, 16385u, 3u << 20}) {
    std::string text(size, '\0');
    std::iota(text.begin(), text.end(), static_cast<char>(size));
    EXPECT_TRUE(Carry(*client, *server, text) == text) << size;
    EXPECT_TRUE(Carry(*server, *client, text) == text) << size;
  }
}

TEST(TlsStream, SentDataIsEncrypted) {
  const std::string key = NewKey();
  auto left_and_middle_left = Connection::Pair();
  auto& left = left_and_middle_left.first;
  auto& middle_left = left_and_middle_left.second;
  auto middle_right_and_right = Connection::Pair();
  auto& middle_right = middle_right_and_right.first;
  auto& right = middle_right_and_right.second;
  std::string seen;
  Thread wire("wire", [&] {
    char bytes[4096];
    pollfd both[] = {{middle_left.fd(), POLLIN, 0}, {middle_right.fd(), POLLIN, 0}};
    while (::poll(both, 2, 10000) > 0) {
      Connection& source = both[0].revents != 0 ? middle_left : middle_right;
      Connection& target = both[0].revents != 0 ? middle_right : middle_left;
      const size_t got = source.TryRead(bytes, sizeof(bytes)).value_or(0);
      if (got == 0) return;
      seen.append(bytes, got);
      target.Write(bytes, got, Soon());
    }
  });
  {
    auto client = std::async(std::launch::async, [&, connection = std::move(left)]() mutable {
      return MakeTlsStream(std::move(connection), kServer, TlsSide::kClient, key, Soon());
    });
    auto server = MakeTlsStream(std::move(right), kClient, TlsSide::kServer, key, Soon());
    EXPECT_EQ(Carry(*client.get(), *server, "the gradient of conv1"), "the gradient of conv1");
  }
  wire.Join();
  EXPECT_GT(seen.size(), 100u);
  EXPECT_EQ(seen.find("gradient"), std::string::npos);
}

TEST(TlsStream, AWrongKeyIsRejectedByBothSides) {
  auto left_and_right = Connection::Pair();
  auto& left = left_and_right.first;
  auto& right = left_and_right.second;
  Thread client("client", [&] {
    const Error error = Thrown(
        [&] { MakeTlsStream(std::move(left), kServer, TlsSide::kClient, NewKey(), Soon()); });
    EXPECT_EQ(error.code(), ErrorCode::kPermissionDenied) << error.message();
    EXPECT_THAT(error.message(), HasSubstr("rank 0 on host b failed TLS authentication"));
  });
  const Error error =
      Thrown([&] { MakeTlsStream(std::move(right), kClient, TlsSide::kServer, NewKey(), Soon()); });
  EXPECT_EQ(error.code(), ErrorCode::kPermissionDenied) << error.message();
  EXPECT_THAT(error.message(), HasSubstr("rank 1 on host a failed TLS authentication"));
  client.Join();
}

// A server that does not know the key but has a self-signed certificate.
void ServeByCertificate(const Connection& connection) {
  EVP_PKEY* key = EVP_EC_gen("P-256");
  X509* certificate = X509_new();
  X509_gmtime_adj(X509_getm_notBefore(certificate), 0);
  X509_gmtime_adj(X509_getm_notAfter(certificate), 3600);
  X509_set_pubkey(certificate, key);
  ASSERT_GT(X509_sign(certificate, key, EVP_sha256()), 0);
  SSL_CTX* context = SSL_CTX_new(TLS_server_method());
  ASSERT_EQ(SSL_CTX_use_certificate(context, certificate), 1);
  ASSERT_EQ(SSL_CTX_use_PrivateKey(context, key), 1);
  SSL* ssl = SSL_new(context);
  SSL_set_fd(ssl, connection.fd());
  SSL_accept(ssl);
  SSL_free(ssl);
  SSL_CTX_free(context);
  X509_free(certificate);
  EVP_PKEY_free(key);
}

TEST(TlsStream, ServerWithACertificateInsteadOfTheKeyIsRejected) {
  auto left_and_right = Connection::Pair();
  auto& left = left_and_right.first;
  auto& right = left_and_right.second;
  Thread server("server", [&] { ServeByCertificate(right); });
  const Error error =
      Thrown([&] { MakeTlsStream(std::move(left), kServer, TlsSide::kClient, NewKey(), Soon()); });
  EXPECT_EQ(error.code(), ErrorCode::kPermissionDenied) << error.message();
  EXPECT_THAT(error.message(), HasSubstr("certificate verify failed"));
  server.Join();
}

TEST(TlsStream, KeysOfTwoMeshesDiffer) {
  const std::string token = NewToken();
  EXPECT_EQ(TlsKey(token, "one all"), TlsKey(token, "one all"));
  EXPECT_NE(TlsKey(token, "one all"), TlsKey(token, "one across"));
  EXPECT_NE(TlsKey(token, "one all"), TlsKey(NewToken(), "one all"));
  EXPECT_EQ(TlsKey(token, "one all").size(), 32u);
}

TEST(TlsStream, UnencryptedPeerIsRejected) {
  auto left_and_right = Connection::Pair();
  auto& left = left_and_right.first;
  auto& right = left_and_right.second;
  left.Write(std::string(100, 'x'), Soon());
  const Error error =
      Thrown([&] { MakeTlsStream(std::move(right), kClient, TlsSide::kServer, NewKey(), Soon()); });
  EXPECT_EQ(error.code(), ErrorCode::kPermissionDenied) << error.message();
}

TEST(TlsStream, PeerThatStallsOrLeavesInTheHandshakeIsNamed) {
  {
    auto left_and_right = Connection::Pair();
    auto& left = left_and_right.first;
    auto& right = left_and_right.second;
    const Error error = Thrown([&] {
      MakeTlsStream(std::move(right), kClient, TlsSide::kServer, NewKey(), Deadline::After(0.05));
    });
    EXPECT_EQ(error.code(), ErrorCode::kDeadlineExceeded) << error.message();
    EXPECT_THAT(error.message(), HasSubstr("rank 1 on host a"));
  }
  auto left_and_right = Connection::Pair();
  auto& left = left_and_right.first;
  auto& right = left_and_right.second;
  left.Shutdown();
  const Error error =
      Thrown([&] { MakeTlsStream(std::move(right), kClient, TlsSide::kServer, NewKey(), Soon()); });
  EXPECT_EQ(error.code(), ErrorCode::kUnavailable) << error.message();
  EXPECT_THAT(error.message(), HasSubstr("rank 1 on host a"));
}

TEST(TlsStream, DataSentBeforeTheEndOfTheConnectionIsReceived) {
  const std::string key = NewKey();
  auto client_and_server = MakePair(key, key);
  auto& client = client_and_server.first;
  auto& server = client_and_server.second;
  char bytes[16] = "last words";
  const iovec part[] = {{bytes, 10}};
  ASSERT_EQ(client->Send(part), 10u);
  client.reset();
  char got[16] = "";
  const iovec buffer[] = {{got, sizeof(got)}};
  EXPECT_EQ(server->Receive(buffer), 10u);
  EXPECT_STREQ(got, "last words");
  const Error error = Thrown([&] { server->Receive(buffer); });
  EXPECT_EQ(error.code(), ErrorCode::kUnavailable) << error.message();
  EXPECT_EQ(error.message(), "rank 1 on host a closed the connection");
}

TEST(TlsStream, TamperedDataIsRejected) {
  const std::string key = NewKey();
  auto left_and_right = Connection::Pair();
  auto& left = left_and_right.first;
  auto& right = left_and_right.second;
  const int raw = ::dup(left.fd());
  auto client = std::async(std::launch::async, [&, connection = std::move(left)]() mutable {
    return MakeTlsStream(std::move(connection), kServer, TlsSide::kClient, key, Soon());
  });
  auto server = MakeTlsStream(std::move(right), kClient, TlsSide::kServer, key, Soon());
  client.get();
  // A record of application data that was never encrypted.
  const std::string forged = std::string("\x17\x03\x03\x00\x20", 5) + std::string(32, 'x');
  ASSERT_EQ(::send(raw, forged.data(), forged.size(), 0), static_cast<ssize_t>(forged.size()));
  char got[64];
  const iovec buffer[] = {{got, sizeof(got)}};
  const Error error = Thrown([&] { server->Receive(buffer); });
  ::close(raw);
  EXPECT_EQ(error.code(), ErrorCode::kDataLoss) << error.message();
}

}  // namespace
}  // namespace hearth::collective
