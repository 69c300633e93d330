#include "hearth/formats/wire.h"

#include <gmock/gmock.h>

#include <limits>
#include <string>

#include "hearth/base/testing/error_testing.h"

namespace hearth::formats {
namespace {

using ::testing::HasSubstr;

constexpr uint64_t kMaxNumber = std::numeric_limits<uint64_t>::max();

// Returns the error of reading these bytes with `read`.
std::string WireError(const std::string& bytes, const std::function<void(WireReader&)>& read) {
  WireReader wire(bytes);
  const Error error = Thrown([&] { read(wire); });
  EXPECT_EQ(error.code(), ErrorCode::kDataLoss);
  EXPECT_THAT(error.message(), HasSubstr("an example is malformed"));
  return error.message();
}

TEST(WireReader, NumbersRoundTripAtTheEdgesOfTheirLengths) {
  for (int bits = 0; bits < 64; ++bits) {
    for (const uint64_t value :
         {(uint64_t{1} << bits) - 1, uint64_t{1} << bits, kMaxNumber >> bits}) {
      std::string bytes;
      PutVarint(value, &bytes);
      EXPECT_EQ(bytes.size(), VarintBytes(value)) << value;
      WireReader wire(bytes);
      EXPECT_EQ(wire.Varint(), value);
      EXPECT_TRUE(wire.done());
    }
  }
  EXPECT_EQ(VarintBytes(127), 1u);
  EXPECT_EQ(VarintBytes(128), 2u);
  EXPECT_EQ(VarintBytes(kMaxNumber), 10u);
}

TEST(WireReader, ANumberHasAtMostTenBytes) {
  const auto read = [](WireReader& wire) { wire.Varint(); };
  EXPECT_THAT(WireError(std::string(10, '\x80') + "\1", read), HasSubstr("more than ten bytes"));
  for (const size_t size : {0, 1, 9}) {
    EXPECT_THAT(WireError(std::string(size, '\x80'), read), HasSubstr("longer than its message"));
  }
}

TEST(WireReader, BytesAreWithinTheMessage) {
  const auto read = [](WireReader& wire) { wire.Bytes(); };
  const std::string three = "\3abc";
  WireReader wire(three);
  EXPECT_EQ(wire.Bytes(), "abc");
  EXPECT_EQ(wire.left(), 0u);
  EXPECT_THAT(WireError("\4abc", read), HasSubstr("longer than its message"));
  // The sum of offset and size overflows.
  std::string huge;
  PutVarint(kMaxNumber, &huge);
  EXPECT_THAT(WireError(huge + "abc", read), HasSubstr("longer than its message"));
}

TEST(WireReader, FixedNumbersAreWithinTheMessage) {
  for (size_t size = 0; size < 4; ++size) {
    WireError(std::string(size, 'x'), [](WireReader& wire) { wire.Float(); });
  }
  for (size_t size = 0; size < 8; ++size) {
    WireError(std::string(size, 'x'), [](WireReader& wire) { wire.Double(); });
  }
  const std::string one("\0\0\x80\x3f", 4);
  EXPECT_EQ(WireReader(one).Float(), 1);
}

TEST(WireReader, SkipsEachTypeOfField) {
  std::string bytes;
  PutVarint(1 << 3 | WireReader::kVarint, &bytes);
  PutVarint(kMaxNumber, &bytes);
  PutVarint(2 << 3 | WireReader::kFixed64, &bytes);
  bytes += "12345678";
  PutHead(3, 5, &bytes);
  bytes += "bytes";
  PutVarint(4 << 3 | WireReader::kFixed32, &bytes);
  bytes += "1234";
  WireReader wire(bytes);
  for (uint32_t field = 1; field <= 4; ++field) {
    ASSERT_FALSE(wire.done());
    wire.NextField();
    EXPECT_EQ(wire.field, field);
    wire.Skip();
  }
  EXPECT_TRUE(wire.done());
  for (const size_t cut : {1, 4, 6, 11, 13, 20, 22, 31}) {
    WireError(bytes.substr(0, bytes.size() - cut), [](WireReader& part) {
      while (!part.done()) {
        part.NextField();
        part.Skip();
      }
    });
  }
}

// Types 3 and 4 were groups; types 6 and 7 were never defined.
TEST(WireReader, OtherTypesAreNamed) {
  for (const int type : {3, 4, 6, 7}) {
    const std::string bytes(1, static_cast<char>(1 << 3 | type));
    EXPECT_THAT(WireError(bytes + "12345678",
                          [](WireReader& wire) {
                            wire.NextField();
                            wire.Skip();
                          }),
                HasSubstr(fmt::format("the unknown wire type {}", type)));
  }
}

}  // namespace
}  // namespace hearth::formats
