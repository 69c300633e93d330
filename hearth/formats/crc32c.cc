#include "hearth/formats/crc32c.h"

#include <array>
#include <cstring>

#if defined(__x86_64__)
#include <nmmintrin.h>
#endif

namespace hearth::formats {
namespace {

// 0x82f63b78 is Castagnoli's polynomial 0x1edc6f41 with its bits reversed, because the lowest bit
// is processed first.
constexpr std::array<uint32_t, 256> MakeTable() {
  std::array<uint32_t, 256> table{};
  for (uint32_t i = 0; i < table.size(); ++i) {
    uint32_t value = i;
    for (int bit = 0; bit < 8; ++bit) value = (value >> 1) ^ ((value & 1) * 0x82f63b78u);
    table[i] = value;
  }
  return table;
}

uint32_t ByTable(uint32_t crc, std::string_view bytes) {
  static constexpr std::array<uint32_t, 256> kTable = MakeTable();
  for (const char byte : bytes)
    crc = kTable[(crc ^ static_cast<uint8_t>(byte)) & 0xff] ^ (crc >> 8);
  return crc;
}

#if defined(__x86_64__)
__attribute__((target("sse4.2"))) uint32_t ByInstruction(uint32_t crc, std::string_view bytes) {
  uint64_t wide = crc;
  while (bytes.size() >= sizeof(uint64_t)) {
    uint64_t word;
    std::memcpy(&word, bytes.data(), sizeof(word));
    wide = _mm_crc32_u64(wide, word);
    bytes.remove_prefix(sizeof(word));
  }
  auto narrow = static_cast<uint32_t>(wide);
  for (const char byte : bytes) narrow = _mm_crc32_u8(narrow, static_cast<uint8_t>(byte));
  return narrow;
}
#endif

}  // namespace

uint32_t Crc32c(std::string_view bytes) {
#if defined(__x86_64__)
  static const bool has_instruction = __builtin_cpu_supports("sse4.2");
  // The register starts as ones and is inverted at the end (RFC 3720, B.4).
  if (has_instruction) return ~ByInstruction(~0u, bytes);
#endif
  return ~ByTable(~0u, bytes);
}

}  // namespace hearth::formats
