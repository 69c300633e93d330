// Primitives for authentication: HMAC-SHA256, random bytes, tokens as hex text.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace hearth {

inline constexpr size_t kDigestBytes = 32;

// The MAC as 32 raw bytes.
std::string HmacSha256(std::string_view key, std::string_view message);

// Cryptographically secure random bytes from the system.
std::string RandomBytes(size_t count);

std::string HexEncode(std::string_view bytes);
// Decodes pairs of hex digits. Throws kInvalidArgument for other text, without quoting it, because
// it may be secret.
std::string HexDecode(std::string_view text);

// A fresh 256-bit secret as 64 hex digits. Never log it.
std::string NewToken();

// Compares in a time that depends on the lengths only, not on the bytes.
bool ConstantTimeEqual(std::string_view a, std::string_view b);

}  // namespace hearth
