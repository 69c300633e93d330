#include "hearth/base/sha256.h"

#include <openssl/evp.h>

#include "hearth/base/error.h"
#include "hearth/base/hmac.h"

namespace hearth {

struct Sha256::State {
  EVP_MD_CTX* context = EVP_MD_CTX_new();
  ~State() { EVP_MD_CTX_free(context); }
};

Sha256::Sha256() : state_(std::make_unique<State>()) {
  Require(state_->context != nullptr && EVP_DigestInit_ex(state_->context, EVP_sha256(), nullptr),
          ErrorCode::kInternal, "libcrypto refused to compute SHA-256");
}

Sha256::~Sha256() = default;

void Sha256::Append(std::string_view bytes) {
  Require(EVP_DigestUpdate(state_->context, bytes.data(), bytes.size()) == 1, ErrorCode::kInternal,
          "libcrypto refused {} bytes for SHA-256", bytes.size());
}

std::string Sha256::Hex() {
  std::string digest(kDigestBytes, '\0');
  auto* raw = reinterpret_cast<unsigned char*>(digest.data());
  Require(EVP_DigestFinal_ex(state_->context, raw, nullptr) == 1, ErrorCode::kInternal,
          "libcrypto refused to finish SHA-256");
  return HexEncode(digest);
}

std::string Sha256Hex(std::string_view bytes) {
  Sha256 hash;
  hash.Append(bytes);
  return hash.Hex();
}

}  // namespace hearth
