#include "hearth/base/sha256.h"

// Uses the low-level functions: EVP would link OpenSSL's providers, which add megabytes to a
// library that only hashes and links OpenSSL statically.
#define OPENSSL_SUPPRESS_DEPRECATED
#include <openssl/sha.h>

#include "hearth/base/error.h"
#include "hearth/base/hmac.h"

namespace hearth {

struct Sha256::State {
  SHA256_CTX context;
};

Sha256::Sha256() : state_(std::make_unique<State>()) {
  Require(SHA256_Init(&state_->context) == 1, ErrorCode::kInternal,
          "libcrypto failed to compute SHA-256");
}

Sha256::~Sha256() = default;

void Sha256::Append(std::string_view bytes) {
  Require(SHA256_Update(&state_->context, bytes.data(), bytes.size()) == 1, ErrorCode::kInternal,
          "libcrypto failed to hash {} bytes by SHA-256", bytes.size());
}

std::string Sha256::Hex() {
  std::string digest(kDigestBytes, '\0');
  auto* raw = reinterpret_cast<unsigned char*>(digest.data());
  Require(SHA256_Final(raw, &state_->context) == 1, ErrorCode::kInternal,
          "libcrypto failed to finish SHA-256");
  return HexEncode(digest);
}

std::string Sha256Hex(std::string_view bytes) {
  Sha256 hash;
  hash.Append(bytes);
  return hash.Hex();
}

}  // namespace hearth
