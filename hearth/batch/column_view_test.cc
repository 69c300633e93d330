#include "hearth/batch/column_view.h"

#include <gmock/gmock.h>

#include "hearth/base/testing/error_testing.h"
#include "hearth/batch/batch_builder.h"

namespace hearth::batch {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::vector<float> Floats(const ColumnView& column, int64_t row) {
  std::vector<float> scratch;
  const std::span<const float> values = column.FloatList(row, &scratch);
  return {values.begin(), values.end()};
}

template <typename T>
ColumnView NumberColumn(ColumnType type, const std::vector<T>& values) {
  ColumnBuffers buffers;
  buffers.data = reinterpret_cast<const uint8_t*>(values.data());
  return ColumnView("x", {type, 0}, static_cast<int64_t>(values.size()), buffers, {});
}

template <typename T>
void ExpectNumber(ColumnType type, T value) {
  const std::vector<T> values = {T{0}, value};
  const ColumnView column = NumberColumn(type, values);
  EXPECT_EQ(column.AsDouble(1), static_cast<double>(value)) << ColumnTypeName(type);
  EXPECT_EQ(column.AsInt64(1), static_cast<int64_t>(value)) << ColumnTypeName(type);
  EXPECT_THAT(Floats(column, 1), ElementsAre(static_cast<float>(value)));
}

TEST(ColumnView, ConvertsEveryTypeOfNumber) {
  ExpectNumber<int8_t>(ColumnType::kInt8, -7);
  ExpectNumber<int16_t>(ColumnType::kInt16, -700);
  ExpectNumber<int32_t>(ColumnType::kInt32, -70000);
  ExpectNumber<int64_t>(ColumnType::kInt64, int64_t{-1} << 40);
  ExpectNumber<uint8_t>(ColumnType::kUint8, 200);
  ExpectNumber<uint16_t>(ColumnType::kUint16, 60000);
  ExpectNumber<uint32_t>(ColumnType::kUint32, 4000000000u);
  ExpectNumber<uint64_t>(ColumnType::kUint64, uint64_t{1} << 40);
  ExpectNumber<float>(ColumnType::kFloat32, 1.5f);
  ExpectNumber<double>(ColumnType::kFloat64, 2.25);
}

TEST(ColumnView, ReadsBoolsBitByBit) {
  const std::vector<uint8_t> bits = {0b00000010, 0b1};
  ColumnBuffers buffers;
  buffers.data = bits.data();
  const ColumnView column("b", {ColumnType::kBool, 0}, 9, buffers, {});
  EXPECT_EQ(column.AsInt64(0), 0);
  EXPECT_EQ(column.AsInt64(1), 1);
  EXPECT_EQ(column.AsDouble(8), 1.0);
  EXPECT_EQ(column.AsText(1), "true");
}

TEST(ColumnView, ReadsByteListsAsBytes) {
  const std::vector<int8_t> values = {1, -1, 2};
  const std::vector<int32_t> offsets = {0, 2, 2, 3};
  const std::vector<uint8_t> last_is_null = {0b011};
  ColumnBuffers lists, bytes;
  lists.offsets = offsets.data();
  bytes.data = reinterpret_cast<const uint8_t*>(values.data());
  const auto column = [&] {
    return ColumnView("x", {ColumnType::kList, 0}, 3, lists,
                      {ColumnView("item", {ColumnType::kInt8, 0}, 3, bytes, {})});
  };
  EXPECT_EQ(column().Bytes(0), "\x01\xff");
  EXPECT_EQ(column().Bytes(1), "");
  EXPECT_EQ(column().Bytes(2), "\x02");
  bytes.validity = last_is_null.data();
  EXPECT_EQ(column().Bytes(0), "\x01\xff");
  EXPECT_THROW(column().Bytes(2), Error);
}

TEST(ColumnView, PrintsLabelsAndIds) {
  EXPECT_EQ(NumberColumn<int8_t>(ColumnType::kInt8, {65}).AsText(0), "65");
  EXPECT_EQ(NumberColumn<float>(ColumnType::kFloat32, {0.5f}).AsText(0), "0.5");
  const auto batch = BatchBuilder().AddString("id", {"", "row 1"}).Build();
  EXPECT_EQ(batch->column("id").AsText(1), "row 1");
  EXPECT_EQ(batch->column("id").Bytes(0), "");
}

TEST(ColumnView, ListsOfFloatsAreNotCopied) {
  const auto batch = BatchBuilder().AddFloatList("x", {{1, 2}, {}, {3}}).Build();
  const ColumnView& column = batch->column("x");
  std::vector<float> scratch;
  EXPECT_EQ(reinterpret_cast<const uint8_t*>(column.FloatList(2, &scratch).data()),
            column.children()[0].buffers().data + 2 * sizeof(float));
  EXPECT_EQ(column.ListLength(0), 2);
  EXPECT_EQ(column.ListLength(1), 0);
  EXPECT_TRUE(Floats(column, 1).empty());
}

TEST(ColumnView, ListsOfOtherNumbersAreConverted) {
  const auto batch = BatchBuilder().AddInt32List("x", {{}, {7, -8}}).Build();
  EXPECT_THAT(Floats(batch->column("x"), 1), ElementsAre(7, -8));
}

TEST(ColumnView, FixedSizeListsAndStructsHaveChildren) {
  const std::vector<float> values = {1, 2, 3, 4};
  ColumnView child = NumberColumn(ColumnType::kFloat32, values);
  const ColumnView list("pair", {ColumnType::kFixedSizeList, 2}, 2, {}, {child});
  EXPECT_THAT(Floats(list, 1), ElementsAre(3, 4));
  const ColumnView row("row", {ColumnType::kStruct, 0}, 4, {}, {child});
  ASSERT_NE(row.FindChild("x"), nullptr);
  EXPECT_EQ(row.FindChild("x")->AsDouble(2), 3);
  EXPECT_EQ(row.FindChild("y"), nullptr);
}

TEST(ColumnView, WrongTypeNamesTheColumnAndBothTypes) {
  const auto batch = BatchBuilder().AddString("id", {"a"}).AddInt32("n", {1}).Build();
  EXPECT_EQ(Thrown([&] { batch->column("id").AsDouble(0); }).message(),
            "column 'id' has type string, but a number is needed");
  EXPECT_EQ(Thrown([&] { batch->column("n").Bytes(0); }).message(),
            "column 'n' has type int32, but a string or binary is needed");
  EXPECT_EQ(CodeOf([&] { Floats(batch->column("id"), 0); }), ErrorCode::kInvalidArgument);
  EXPECT_EQ(CodeOf([&] { batch->column("id").ListLength(0); }), ErrorCode::kInvalidArgument);
}

TEST(ColumnView, NullsAreNeverReadAsValues) {
  const auto batch = BatchBuilder()
                         .AddInt32("n", {1, 2}, {false, true})
                         .AddFloatList("x", {{1}, {}}, {false, true})
                         .Build();
  EXPECT_FALSE(batch->column("n").IsNull(0));
  EXPECT_TRUE(batch->column("n").IsNull(1));
  EXPECT_THAT(Thrown([&] { batch->column("n").AsInt64(1); }).message(),
              HasSubstr("column 'n' is null in row 1"));
  EXPECT_EQ(CodeOf([&] { Floats(batch->column("x"), 1); }), ErrorCode::kInvalidArgument);
}

TEST(ColumnView, NullInsideAListIsAnErrorWithItsPosition) {
  const std::vector<float> values = {1, 2, 3, 4};
  const uint8_t validity = 0b0111;
  ColumnBuffers buffers;
  buffers.data = reinterpret_cast<const uint8_t*>(values.data());
  buffers.validity = &validity;
  const ColumnView child("item", {ColumnType::kFloat32, 0}, 4, buffers, {});
  const ColumnView list("x", {ColumnType::kFixedSizeList, 2}, 2, {}, {child});
  EXPECT_THAT(Floats(list, 0), ElementsAre(1, 2));
  EXPECT_THAT(Thrown([&] { Floats(list, 1); }).message(),
              HasSubstr("'x' has a null at position 1 in row 1"));
}

}  // namespace
}  // namespace hearth::batch
