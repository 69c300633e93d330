#include "hearth/batch/batch_builder.h"

#include <gmock/gmock.h>

#include "hearth/base/testing/error_testing.h"

namespace hearth::batch {
namespace {

TEST(BatchBuilder, BuildsEveryColumnType) {
  const auto batch = BatchBuilder()
                         .AddInt32("i", {1, 2})
                         .AddInt64("l", {3, 4})
                         .AddFloat("f", {0.5f, 1.5f})
                         .AddDouble("d", {2.5, 3.5})
                         .AddString("s", {"x", "yz"})
                         .AddBinary("b", {std::string("\0\1", 2), ""})
                         .AddFloatList("lf", {{1}, {2, 3}})
                         .AddFlatFloatLists("ff", {4, 5, 6}, {0, 2, 3})
                         .AddInt32List("li", {{7}, {}})
                         .Build();
  EXPECT_EQ(batch->rows(), 2);
  EXPECT_EQ(batch->column("l").AsInt64(1), 4);
  EXPECT_EQ(batch->column("d").AsDouble(0), 2.5);
  EXPECT_EQ(batch->column("b").type(), ColumnType::kBinary);
  EXPECT_EQ(batch->column("b").Bytes(0), std::string("\0\1", 2));
  std::vector<float> scratch;
  EXPECT_EQ(batch->column("ff").FloatList(0, &scratch)[1], 5);
  EXPECT_EQ(batch->column("lf").ListLength(1), 2);
  EXPECT_EQ(batch->column("li").ListLength(1), 0);
}

TEST(BatchBuilder, ViewsAreCopiedFromTheirValues) {
  const std::string text = "some bytes next to each other";
  const std::string_view all = text;
  const std::vector<std::string_view> values = {all.substr(20),    all, "",
                                                all.substr(0, 12), all, all.substr(3, 20)};
  const std::vector<bool> nulls = {false, false, false, false, true, false};
  const auto batch = BatchBuilder().AddBinaryViews("b", values, nulls).Build();
  ASSERT_EQ(batch->rows(), 6);
  EXPECT_EQ(batch->column("b").type(), ColumnType::kBinary);
  for (int64_t row = 0; row < 6; ++row) {
    const auto at = static_cast<size_t>(row);
    EXPECT_EQ(batch->column("b").IsNull(row), nulls[at]);
    if (nulls[at]) continue;
    EXPECT_EQ(batch->column("b").Bytes(row), values[at]) << row;
  }
}

TEST(BatchBuilder, ColumnsOfUnequalLengthAreRejected) {
  BatchBuilder rows;
  rows.AddInt32("a", {1, 2}).AddInt32("b", {1});
  EXPECT_EQ(Thrown([&] { rows.Build(); }).message(),
            "column 'b' has 1 values, but column 'a' has 2");
  EXPECT_EQ(CodeOf([&] { rows.AddInt32("c", {1}, {true, false}); }), ErrorCode::kInvalidArgument);
}

}  // namespace
}  // namespace hearth::batch
