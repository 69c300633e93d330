#include "hearth/dataset/convert_numbers.h"

#include <gmock/gmock.h>

#include <cmath>
#include <limits>
#include <vector>

#include "hearth/base/error.h"
#include "hearth/base/testing/error_testing.h"

namespace hearth::dataset {
namespace {

using batch::ColumnType;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

template <typename To, typename From>
std::vector<To> Converted(ColumnType from, const std::vector<From>& values, ColumnType to) {
  std::vector<To> converted(values.size());
  ConvertNumbers({from, to, "c"}, reinterpret_cast<const std::byte*>(values.data()),
                 static_cast<int64_t>(values.size()),
                 reinterpret_cast<std::byte*>(converted.data()));
  return converted;
}

template <typename To, typename From>
bool Refused(ColumnType from, From value, ColumnType to) {
  try {
    Converted<To>(from, std::vector<From>{value}, to);
    return false;
  } catch (const Error& error) {
    return error.code() == ErrorCode::kInvalidArgument;
  }
}

TEST(ConvertNumbers, KeepsValuesThatFit) {
  EXPECT_THAT(
      Converted<float>(ColumnType::kUint8, std::vector<uint8_t>{0, 255}, ColumnType::kFloat32),
      ElementsAre(0, 255));
  EXPECT_THAT(
      Converted<float>(ColumnType::kFloat64, std::vector<double>{0.1}, ColumnType::kFloat32),
      ElementsAre(0.1F));
  EXPECT_THAT(
      Converted<int64_t>(ColumnType::kFloat64, std::vector<double>{-3, 4e9}, ColumnType::kInt64),
      ElementsAre(-3, 4000000000));
  EXPECT_THAT(Converted<int8_t>(ColumnType::kBool, std::vector<uint8_t>{1, 0}, ColumnType::kInt8),
              ElementsAre(1, 0));
}

TEST(ConvertNumbers, RejectsValuesThatDoNotFit) {
  EXPECT_TRUE(Refused<uint8_t>(ColumnType::kInt32, 256, ColumnType::kUint8));
  EXPECT_TRUE(Refused<uint8_t>(ColumnType::kInt32, -1, ColumnType::kUint8));
  EXPECT_TRUE(Refused<float>(ColumnType::kFloat64, 1e300, ColumnType::kFloat32));
  EXPECT_FALSE(Refused<float>(ColumnType::kFloat64, HUGE_VAL, ColumnType::kFloat32));
  EXPECT_TRUE(Refused<int32_t>(ColumnType::kFloat32, 0.5F, ColumnType::kInt32));
  EXPECT_TRUE(Refused<int32_t>(ColumnType::kFloat32, 2147483648.0F, ColumnType::kInt32));
  EXPECT_TRUE(Refused<int64_t>(ColumnType::kFloat64, std::nan(""), ColumnType::kInt64));
  EXPECT_TRUE(Refused<uint8_t>(ColumnType::kInt64, int64_t{2}, ColumnType::kBool));
  EXPECT_TRUE(Refused<int64_t>(ColumnType::kUint64, UINT64_MAX, ColumnType::kInt64));
  EXPECT_EQ(Thrown([] { NumberTypeOf("complex64"); }).code(), ErrorCode::kInvalidArgument);
}

TEST(ConvertNumbers, NamesTheColumnOfAValueThatDoesNotFit) {
  const Error error = Thrown([] {
    Converted<int8_t>(ColumnType::kInt32, std::vector{1, 300}, ColumnType::kInt8);
  });
  EXPECT_THAT(error.message(), HasSubstr("'c'"));
  EXPECT_THAT(error.message(), HasSubstr("300"));
}

// The smallest and the largest value of T fit, values beyond them do not.
template <typename T>
void ExpectBounds(ColumnType type) {
  using Limits = std::numeric_limits<T>;
  constexpr int64_t kLeast = Limits::min(), kMost = Limits::max();
  EXPECT_THAT(Converted<T>(ColumnType::kInt64, std::vector<int64_t>{kLeast, kMost}, type),
              ElementsAre(Limits::min(), Limits::max()));
  EXPECT_TRUE(Refused<T>(ColumnType::kInt64, kLeast - 1, type));
  EXPECT_TRUE(Refused<T>(ColumnType::kInt64, kMost + 1, type));
  const auto least = static_cast<double>(kLeast), most = static_cast<double>(kMost);
  EXPECT_THAT(Converted<T>(ColumnType::kFloat64, std::vector<double>{least, most}, type),
              ElementsAre(Limits::min(), Limits::max()));
  for (const double value : {least - 1, most + 1, most + 0.5, -HUGE_VAL, HUGE_VAL, std::nan("")}) {
    EXPECT_TRUE(Refused<T>(ColumnType::kFloat64, value, type)) << value;
  }
  EXPECT_THAT(Converted<T>(ColumnType::kBool, std::vector<uint8_t>{0, 1}, type), ElementsAre(0, 1));
}

TEST(ConvertNumbers, EachIntegerTypeHoldsItsBounds) {
  ExpectBounds<int8_t>(ColumnType::kInt8);
  ExpectBounds<int16_t>(ColumnType::kInt16);
  ExpectBounds<int32_t>(ColumnType::kInt32);
  ExpectBounds<uint8_t>(ColumnType::kUint8);
  ExpectBounds<uint16_t>(ColumnType::kUint16);
  ExpectBounds<uint32_t>(ColumnType::kUint32);
}

// As floats, the largest 64-bit integers are rounded up to a power of two that does not fit.
TEST(ConvertNumbers, FloatsAreComparedWithTheBoundsOf64Bits) {
  EXPECT_TRUE(Refused<int64_t>(ColumnType::kFloat64, 0x1p63, ColumnType::kInt64));
  EXPECT_FALSE(Refused<int64_t>(ColumnType::kFloat64, -0x1p63, ColumnType::kInt64));
  EXPECT_TRUE(Refused<int64_t>(ColumnType::kFloat64, -0x1.0000000000001p63, ColumnType::kInt64));
  EXPECT_TRUE(Refused<uint64_t>(ColumnType::kFloat64, 0x1p64, ColumnType::kUint64));
  EXPECT_FALSE(Refused<uint64_t>(ColumnType::kFloat64, 0x1.fffffffffffffp63, ColumnType::kUint64));
  EXPECT_TRUE(Refused<int64_t>(ColumnType::kFloat32, 0x1p63F, ColumnType::kInt64));
  EXPECT_FALSE(Refused<uint64_t>(ColumnType::kFloat64, -0.0, ColumnType::kUint64));
}

TEST(ConvertNumbers, FloatsThatAreNotFiniteStayAsTheyAre) {
  const auto narrow =
      Converted<float>(ColumnType::kFloat64,
                       std::vector<double>{std::nan(""), -HUGE_VAL, -0.0, 1e-320, 0x1.fffffep127},
                       ColumnType::kFloat32);
  EXPECT_TRUE(std::isnan(narrow[0]));
  EXPECT_EQ(narrow[1], -HUGE_VALF);
  EXPECT_TRUE(std::signbit(narrow[2]));
  EXPECT_EQ(narrow[3], 0);
  EXPECT_EQ(narrow[4], std::numeric_limits<float>::max());
  // Halfway between the largest float and the next power of two: rounds to infinity.
  EXPECT_TRUE(Refused<float>(ColumnType::kFloat64, 0x1.ffffffp127, ColumnType::kFloat32));
}

TEST(ConvertNumbers, BoolsAreZeroOrOne) {
  EXPECT_THAT(
      Converted<uint8_t>(ColumnType::kFloat32, std::vector<float>{0, 1, -0.0F}, ColumnType::kBool),
      ElementsAre(0, 1, 0));
  for (const float value : {0.5F, -1.0F, 2.0F, std::nanf("")}) {
    EXPECT_TRUE(Refused<uint8_t>(ColumnType::kFloat32, value, ColumnType::kBool)) << value;
  }
}

TEST(ConvertNumbers, CountsTheValuesThatDoNotFit) {
  const Error error = Thrown([] {
    Converted<uint8_t>(ColumnType::kInt32, std::vector{1, -5, 300, 255}, ColumnType::kUint8);
  });
  EXPECT_THAT(error.message(), HasSubstr("the value -5, which uint8 cannot hold (2 of 4 values"));
  EXPECT_TRUE(
      Converted<uint8_t>(ColumnType::kInt32, std::vector<int>{}, ColumnType::kUint8).empty());
}

TEST(NumberTypeOfTest, KnowsEachNumberTypeAndNoOther) {
  for (const char* name : {"bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32",
                           "uint64", "float32", "float64"}) {
    EXPECT_EQ(batch::ColumnTypeName(NumberTypeOf(name)), name);
  }
  for (const char* name : {"", "int", "Int8", "int128", "float16", "utf8", "list", "binary"}) {
    const Error error = Thrown([&] { NumberTypeOf(name); });
    EXPECT_EQ(error.code(), ErrorCode::kInvalidArgument);
    EXPECT_THAT(error.message(), HasSubstr(name));
  }
}

}  // namespace
}  // namespace hearth::dataset
