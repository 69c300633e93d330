#include "hearth/dataset/same_columns.h"

#include <gmock/gmock.h>

#include "hearth/base/testing/error_testing.h"
#include "hearth/batch/batch_builder.h"

namespace hearth::dataset {
namespace {

using batch::BatchBuilder;
using ::testing::HasSubstr;

std::string ErrorOf(BatchBuilder& before, BatchBuilder& later) {
  const Error error = Thrown([&] { RequireSameColumns(*before.Build(), *later.Build(), 7); });
  EXPECT_EQ(error.code(), ErrorCode::kDataLoss);
  return error.message();
}

TEST(RequireSameColumns, AcceptsOtherRowsOfTheSameTypes) {
  BatchBuilder before, later;
  before.AddInt64("a", {1}).AddFloatList("x", {{1, 2}}).AddString("s", {"a"});
  later.AddInt64("a", {1, 2}, {true, false}).AddFloatList("x", {{}, {3}}).AddString("s", {"", "b"});
  RequireSameColumns(*before.Build(), *later.Build(), 7);
}

TEST(RequireSameColumns, NamesThePartitionAndBothTypes) {
  BatchBuilder before, type, name, order, missing;
  before.AddInt64("a", {1}).AddFloatList("x", {{1}});
  type.AddInt64("a", {1}).AddInt32List("x", {{1}});
  name.AddInt64("b", {1}).AddFloatList("x", {{1}});
  order.AddFloatList("x", {{1}}).AddInt64("a", {1});
  missing.AddInt64("a", {1});
  EXPECT_THAT(
      ErrorOf(before, type),
      HasSubstr("partition 7 has the columns a int64, x list<int32>, but earlier rows have a "
                "int64, x list<float32>"));
  for (BatchBuilder* other : {&name, &order, &missing}) {
    EXPECT_THAT(ErrorOf(before, *other), HasSubstr("partition 7"));
  }
}

}  // namespace
}  // namespace hearth::dataset
