#include "hearth/formats/crc32c.h"

#include <gtest/gtest.h>

#include <string>

namespace hearth::formats {
namespace {

// Values from RFC 3720, appendix B.4. The CRC of the digits is in all catalogues of CRCs.
TEST(Crc32cTest, HasThePublishedValues) {
  EXPECT_EQ(Crc32c(""), 0u);
  EXPECT_EQ(Crc32c("123456789"), 0xe3069283u);
  EXPECT_EQ(Crc32c(std::string(32, '\0')), 0x8a9136aau);
  EXPECT_EQ(Crc32c(std::string(32, '\xff')), 0x62a8ab43u);
  std::string rising;
  for (char byte = 0; byte < 32; ++byte) rising += byte;
  EXPECT_EQ(Crc32c(rising), 0x46dd794eu);
}

// A changed bit must be detected at every position: among the first bytes, which are processed
// eight at a time, and among the rest, which are processed one by one.
TEST(Crc32cTest, ChangesWithEveryBit) {
  const std::string bytes = "nineteen bytes long";
  for (size_t at = 0; at < bytes.size(); ++at) {
    for (int bit = 0; bit < 8; ++bit) {
      std::string changed = bytes;
      changed[at] = static_cast<char>(changed[at] ^ (1 << bit));
      EXPECT_NE(Crc32c(changed), Crc32c(bytes)) << at;
    }
  }
}

// The length (24) of the first record of a TensorFlow event file.
TEST(Crc32cTest, IsMaskedAsInTfRecords) {
  EXPECT_EQ(MaskedCrc32c(std::string("\x18\0\0\0\0\0\0\0", 8)), 0x224b7fa3u);
}

}  // namespace
}  // namespace hearth::formats
