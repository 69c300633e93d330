// CRC-32C (Castagnoli), the checksum of TFRecord files. Thread-safe.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace hearth::formats {

uint32_t Crc32c(std::string_view bytes);

// The CRC in the form that files store: rotated, plus a constant. Without this mask, a CRC of data
// that contains CRCs would be weak.
inline uint32_t MaskedCrc32c(std::string_view bytes) {
  const uint32_t crc = Crc32c(bytes);
  return ((crc >> 15) | (crc << 17)) + 0xa282ead8u;
}

}  // namespace hearth::formats
