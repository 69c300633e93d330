#include "hearth/base/hmac.h"

#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <openssl/rand.h>

#include "hearth/base/error.h"

namespace hearth {
namespace {

unsigned char* Raw(std::string& bytes) { return reinterpret_cast<unsigned char*>(bytes.data()); }

int HexValue(char digit) {
  if (digit >= '0' && digit <= '9') return digit - '0';
  if (digit >= 'a' && digit <= 'f') return digit - 'a' + 10;
  if (digit >= 'A' && digit <= 'F') return digit - 'A' + 10;
  return -1;
}

}  // namespace

std::string HmacSha256(std::string_view key, std::string_view message) {
  std::string digest(kDigestBytes, '\0');
  const auto* done = ::HMAC(EVP_sha256(), key.data(), static_cast<int>(key.size()),
                            reinterpret_cast<const unsigned char*>(message.data()), message.size(),
                            Raw(digest), nullptr);
  Require(done != nullptr, ErrorCode::kInternal, "libcrypto refused to compute HMAC-SHA256");
  return digest;
}

std::string RandomBytes(size_t count) {
  std::string bytes(count, '\0');
  Require(::RAND_bytes(Raw(bytes), static_cast<int>(count)) == 1, ErrorCode::kInternal,
          "libcrypto gave no {} random bytes", count);
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
