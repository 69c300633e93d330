#include "hearth/batch/column_type.h"

#include <gtest/gtest.h>

namespace hearth::batch {
namespace {

TEST(ColumnType, EveryTypeRoundTripsThroughItsArrowFormat) {
  for (uint32_t number = 1; IsKnownColumnType(number); ++number) {
    const ArrowType type = {static_cast<ColumnType>(number), 0};
    ArrowType parsed;
    ASSERT_TRUE(ParseArrowFormat(ArrowFormat(type), &parsed)) << ColumnTypeName(type.type);
    // Values in a file are exported to Arrow as ordinary views.
    const bool in_file = type.type == ColumnType::kFileBinary;
    EXPECT_EQ(parsed.type, in_file ? ColumnType::kBinary : type.type);
    EXPECT_EQ(parsed.views, in_file);
  }
}

TEST(ColumnType, FixedSizeListCarriesItsSize) {
  ArrowType parsed;
  ASSERT_TRUE(ParseArrowFormat("+w:784", &parsed));
  EXPECT_EQ(parsed.list_size, 784);
  EXPECT_EQ(ArrowFormat(parsed), "+w:784");
}

TEST(ColumnType, OtherFormatsAreRejected) {
  ArrowType parsed;
  for (const char* format : {"", "n", "e", "d:19,10", "tdD", "+m", "+w:", "+w:-1", "+w:3x", "vl"}) {
    EXPECT_FALSE(ParseArrowFormat(format, &parsed)) << format;
  }
  EXPECT_FALSE(IsKnownColumnType(0));
  EXPECT_FALSE(IsKnownColumnType(21));
}

}  // namespace
}  // namespace hearth::batch
