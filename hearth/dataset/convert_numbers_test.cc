#include "hearth/dataset/convert_numbers.h"

#include <gmock/gmock.h>

#include <cmath>
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

}  // namespace
}  // namespace hearth::dataset
