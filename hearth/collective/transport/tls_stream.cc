#include "hearth/collective/transport/tls_stream.h"

#include <openssl/bio.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <string_view>
#include <utility>
#include <vector>

#include "hearth/base/error.h"
#include "hearth/base/hmac.h"

namespace hearth::collective {
namespace {

// TLS 1.3 with a pre-shared key (RFC 8446, 4.2.11). The identity only has to be equal on both
// sides; the key differs per mesh. The cipher suite's number is defined in RFC 8446, B.4. The suite
// uses SHA-256, as the pre-shared key requires, and AES, for which CPUs have instructions.
constexpr std::string_view kIdentity = "hearth";
constexpr const char* kCipherSuite = "TLS_AES_128_GCM_SHA256";
constexpr unsigned char kCipherSuiteNumber[] = {0x13, 0x01};
// Payload of one TLS record.
constexpr size_t kRecordBytes = 16 << 10;

template <auto kFree>
struct Freed {
  template <typename T>
  void operator()(T* pointer) const {
    kFree(pointer);
  }
};
using Context = std::unique_ptr<SSL_CTX, Freed<SSL_CTX_free>>;
using Session = std::unique_ptr<SSL, Freed<SSL_free>>;

// Replaces OpenSSL's socket BIO, which would raise SIGPIPE if the peer is gone.
int DescriptorOf(BIO* bio) {
  return static_cast<int>(reinterpret_cast<intptr_t>(BIO_get_data(bio)));
}

int WriteSocket(BIO* bio, const char* data, int size) {
  BIO_clear_retry_flags(bio);
  const ssize_t sent =
      ::send(DescriptorOf(bio), data, static_cast<size_t>(size), MSG_NOSIGNAL | MSG_DONTWAIT);
  if (sent < 0 && WouldBlock(errno)) BIO_set_retry_write(bio);
  return static_cast<int>(sent);
}

int ReadSocket(BIO* bio, char* data, int size) {
  BIO_clear_retry_flags(bio);
  const ssize_t got = ::recv(DescriptorOf(bio), data, static_cast<size_t>(size), MSG_DONTWAIT);
  if (got < 0 && WouldBlock(errno)) BIO_set_retry_read(bio);
  return static_cast<int>(got);
}

long ControlSocket(BIO*, int command, long, void*) { return command == BIO_CTRL_FLUSH ? 1 : 0; }

BIO* NewSocket(int fd) {
  static BIO_METHOD* const method = [] {
    BIO_METHOD* made = BIO_meth_new(BIO_get_new_index() | BIO_TYPE_SOURCE_SINK, "socket");
    BIO_meth_set_write(made, &WriteSocket);
    BIO_meth_set_read(made, &ReadSocket);
    BIO_meth_set_ctrl(made, &ControlSocket);
    return made;
  }();
  BIO* bio = BIO_new(method);
  // NOLINTNEXTLINE(performance-no-int-to-ptr): the number itself is stored, nothing is read there.
  BIO_set_data(bio, reinterpret_cast<void*>(static_cast<intptr_t>(fd)));
  BIO_set_init(bio, 1);
  return bio;
}

// Returns the pre-shared key as a session to resume, which is how OpenSSL expects it. Null if out
// of memory.
SSL_SESSION* SessionOfKey(SSL* ssl) {
  const auto* key = static_cast<const std::string*>(SSL_get_app_data(ssl));
  SSL_SESSION* session = SSL_SESSION_new();
  const bool made =
      session != nullptr &&
      SSL_SESSION_set1_master_key(session, reinterpret_cast<const unsigned char*>(key->data()),
                                  key->size()) == 1 &&
      SSL_SESSION_set_cipher(session, SSL_CIPHER_find(ssl, kCipherSuiteNumber)) == 1 &&
      SSL_SESSION_set_protocol_version(session, TLS1_3_VERSION) == 1;
  if (made) return session;
  SSL_SESSION_free(session);
  return nullptr;
}

int OfferKey(SSL* ssl, const EVP_MD*, const unsigned char** identity, size_t* size,
             SSL_SESSION** session) {
  *identity = reinterpret_cast<const unsigned char*>(kIdentity.data());
  *size = kIdentity.size();
  *session = SessionOfKey(ssl);
  return *session != nullptr ? 1 : 0;
}

// Without a session, the handshake falls back to certificates and fails because there are none.
int FindKey(SSL* ssl, const unsigned char* identity, size_t size, SSL_SESSION** session) {
  const std::string_view offered(reinterpret_cast<const char*>(identity), size);
  *session = offered == kIdentity ? SessionOfKey(ssl) : nullptr;
  return 1;
}

// Disables tickets and the session cache, because no session is resumed later. With partial writes,
// a write returns after each record, so that the caller can serve other peers; a moving buffer lets
// a retry pass the same bytes at another address.
Context NewContext(TlsSide side) {
  Context context(SSL_CTX_new(TLS_method()));
  const bool made = context != nullptr &&
                    SSL_CTX_set_min_proto_version(context.get(), TLS1_3_VERSION) == 1 &&
                    SSL_CTX_set_ciphersuites(context.get(), kCipherSuite) == 1 &&
                    SSL_CTX_set_num_tickets(context.get(), 0) == 1;
  Require(made, ErrorCode::kResourceExhausted, "OpenSSL cannot set up TLS 1.3 on this host");
  SSL_CTX_set_session_cache_mode(context.get(), SSL_SESS_CACHE_OFF);
  SSL_CTX_set_mode(context.get(),
                   SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER);
  if (side == TlsSide::kClient) {
    // Rejects a server that authenticates by certificate.
    SSL_CTX_set_verify(context.get(), SSL_VERIFY_PEER, nullptr);
    SSL_CTX_set_psk_use_session_callback(context.get(), &OfferKey);
  } else {
    SSL_CTX_set_psk_find_session_callback(context.get(), &FindKey);
  }
  return context;
}

class TlsStream : public PeerStream {
 public:
  TlsStream(Connection connection, Peer peer, TlsSide side, std::string key)
      : connection_(std::move(connection)),
        peer_(std::move(peer)),
        key_(std::move(key)),
        context_(NewContext(side)),
        ssl_(SSL_new(context_.get())) {
    Require(ssl_ != nullptr, ErrorCode::kResourceExhausted, "OpenSSL is out of memory");
    SSL_set_app_data(ssl_.get(), &key_);
    BIO* socket = NewSocket(fd());
    SSL_set_bio(ssl_.get(), socket, socket);  // takes ownership
    side == TlsSide::kClient ? SSL_set_connect_state(ssl_.get()) : SSL_set_accept_state(ssl_.get());
  }

  void Handshake(Deadline deadline) {
    while (true) {
      // SSL_get_error reads this thread's error queue, in which unrelated calls may have left
      // errors.
      ERR_clear_error();
      const int result = SSL_do_handshake(ssl_.get());
      if (result == 1) break;
      const int error = SSL_get_error(ssl_.get(), result);
      Require(error != SSL_ERROR_SSL, ErrorCode::kPermissionDenied,
              "{} failed TLS authentication with the job's token ({})", peer_.name(), Reason());
      const bool waits = error == SSL_ERROR_WANT_READ || error == SSL_ERROR_WANT_WRITE;
      Require(waits, ErrorCode::kUnavailable, "{} closed the connection during the TLS handshake",
              peer_.name());
      const short event = error == SSL_ERROR_WANT_READ ? POLLIN : POLLOUT;
      Require(PollOne(fd(), event, deadline) != 0, ErrorCode::kDeadlineExceeded,
              "{} did not finish the TLS handshake before the deadline", peer_.name());
    }
    // A resumed session proves that the peer knows the key; a certificate does not.
    Require(SSL_session_reused(ssl_.get()) == 1, ErrorCode::kPermissionDenied,
            "{} failed TLS authentication with the job's token", peer_.name());
  }

  size_t Send(std::span<const iovec> parts) override {
    size_t total = 0;
    while (true) {
      const std::span<const std::byte> record = NextRecord(parts, total);
      if (record.empty()) return total;
      size_t sent = 0;
      ERR_clear_error();
      const int result = SSL_write_ex(ssl_.get(), record.data(), record.size(), &sent);
      if (result != 1) {
        if (!MustWait(result)) ThrowClosed();
        return total;
      }
      total += sent;
    }
  }

  size_t Receive(std::span<const iovec> parts) override {
    size_t total = 0;
    for (const iovec& part : parts) {
      auto* data = static_cast<std::byte*>(part.iov_base);
      for (size_t done = 0; done < part.iov_len;) {
        size_t got = 0;
        ERR_clear_error();
        const int result = SSL_read_ex(ssl_.get(), data + done, part.iov_len - done, &got);
        if (result != 1) {
          // Returns the bytes received before the connection closed; the next call throws.
          if (!MustWait(result) && total == 0) ThrowClosed();
          return total;
        }
        done += got;
        total += got;
      }
    }
    return total;
  }

  int fd() const override { return connection_.fd(); }
  void Shutdown() noexcept override { connection_.Shutdown(); }

 private:
  // Returns the bytes of `parts` from byte `from` on, at most one record, in contiguous memory. If
  // the socket did not accept a record, OpenSSL has already encrypted it, so a retry must return
  // the same bytes.
  std::span<const std::byte> NextRecord(std::span<const iovec> parts, size_t from) {
    record_.clear();
    for (const iovec& part : parts) {
      if (from >= part.iov_len) {
        from -= part.iov_len;
        continue;
      }
      const auto* data = static_cast<const std::byte*>(part.iov_base) + from;
      const size_t taken = std::min(part.iov_len - from, kRecordBytes - record_.size());
      if (taken == kRecordBytes) return {data, taken};
      record_.insert(record_.end(), data, data + taken);
      from = 0;
    }
    return record_;
  }

  // Returns true if the caller must poll, false if the connection has closed. Throws if bytes fail
  // decryption.
  bool MustWait(int result) const {
    const int error = SSL_get_error(ssl_.get(), result);
    Require(error != SSL_ERROR_SSL, ErrorCode::kDataLoss, "the connection to {}: TLS: {}",
            peer_.name(), Reason());
    return error == SSL_ERROR_WANT_READ || error == SSL_ERROR_WANT_WRITE;
  }

  [[noreturn]] void ThrowClosed() const {
    Throw(ErrorCode::kUnavailable, "{} closed the connection", peer_.name());
  }

  static std::string Reason() {
    const char* reason = ERR_reason_error_string(ERR_peek_error());
    return reason == nullptr ? "unknown" : reason;
  }

  Connection connection_;
  const Peer peer_;
  const std::string key_;
  const Context context_;
  const Session ssl_;
  std::vector<std::byte> record_;
};

}  // namespace

std::string TlsKey(const std::string& token, const std::string& session) {
  return HmacSha256(HexDecode(token), "tls of the collective " + session);
}

std::unique_ptr<PeerStream> MakeTlsStream(Connection connection, const Peer& peer, TlsSide side,
                                          const std::string& key, Deadline deadline) {
  auto stream = std::make_unique<TlsStream>(std::move(connection), peer, side, key);
  stream->Handshake(deadline);
  return stream;
}

}  // namespace hearth::collective
