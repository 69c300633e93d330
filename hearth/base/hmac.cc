#include "hearth/base/hmac.h"

// Uses only low-level functions, which do not link OpenSSL's providers (see sha256.cc).
#define OPENSSL_SUPPRESS_DEPRECATED
#include <openssl/crypto.h>
#include <openssl/sha.h>
#include <sys/random.h>

#include <cerrno>
#include <cstring>

#include "hearth/base/error.h"

namespace hearth {
namespace {

// Hash of `before` followed by `message`.
std::string Sha256Of(std::string_view before, std::string_view message) {
  SHA256_CTX context;
  std::string digest(kDigestBytes, '\0');
  const bool done = SHA256_Init(&context) == 1 &&
                    SHA256_Update(&context, before.data(), before.size()) == 1 &&
                    SHA256_Update(&context, message.data(), message.size()) == 1 &&
                    SHA256_Final(reinterpret_cast<unsigned char*>(digest.data()), &context) == 1;
  // The context holds the padded key. Unlike memset, OPENSSL_cleanse is not optimised away.
  OPENSSL_cleanse(&context, sizeof context);
  Require(done, ErrorCode::kInternal, "libcrypto failed to compute HMAC-SHA256");
  return digest;
}

// The key of RFC 2104's inner or outer hash: hashed if it is longer than a block, padded with zeros
// to a block, and XORed with `pad`.
std::string Padded(std::string_view key, char pad) {
  std::string block = key.size() > SHA256_CBLOCK ? Sha256Of(key, {}) : std::string(key);
  block.resize(SHA256_CBLOCK, '\0');
  for (char& byte : block) byte = static_cast<char>(byte ^ pad);
  return block;
}

int HexValue(char digit) {
  if (digit >= '0' && digit <= '9') return digit - '0';
  if (digit >= 'a' && digit <= 'f') return digit - 'a' + 10;
  if (digit >= 'A' && digit <= 'F') return digit - 'A' + 10;
  return -1;
}

}  // namespace

// RFC 2104: H((K ^ opad) || H((K ^ ipad) || message)), with opad = 0x5c and ipad = 0x36 in each
// byte.
std::string HmacSha256(std::string_view key, std::string_view message) {
  return Sha256Of(Padded(key, 0x5c), Sha256Of(Padded(key, 0x36), message));
}

std::string RandomBytes(size_t count) {
  std::string bytes(count, '\0');
  for (size_t done = 0; done < count;) {
    // Without flags, getrandom() blocks only until the kernel's generator is seeded, early at boot.
    // A signal may interrupt requests above 256 bytes.
    const ssize_t some = ::getrandom(bytes.data() + done, count - done, 0);
    Require(some > 0 || errno == EINTR, ErrorCode::kInternal,
            "getrandom() did not return {} random bytes: {}", count - done, std::strerror(errno));
    if (some > 0) done += static_cast<size_t>(some);
  }
  return bytes;
}

std::string HexEncode(std::string_view bytes) {
  constexpr std::string_view kDigits = "0123456789abcdef";
  std::string text;
  text.reserve(bytes.size() * 2);
  for (const unsigned char byte : bytes) {
    text += kDigits[byte >> 4];
    text += kDigits[byte & 15];
  }
  return text;
}

std::string HexDecode(std::string_view text) {
  Require(text.size() % 2 == 0, ErrorCode::kInvalidArgument,
          "hex text must have an even number of digits, not {}", text.size());
  std::string bytes;
  bytes.reserve(text.size() / 2);
  for (size_t i = 0; i < text.size(); i += 2) {
    const int high = HexValue(text[i]);
    const int low = HexValue(text[i + 1]);
    Require(high >= 0 && low >= 0, ErrorCode::kInvalidArgument,
            "hex text has a character that is not a hex digit at or after position {}", i);
    bytes += static_cast<char>(high << 4 | low);
  }
  return bytes;
}

std::string NewToken() { return HexEncode(RandomBytes(32)); }

bool ConstantTimeEqual(std::string_view a, std::string_view b) {
  return a.size() == b.size() && ::CRYPTO_memcmp(a.data(), b.data(), a.size()) == 0;
}

}  // namespace hearth
