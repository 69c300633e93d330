#include "hearth/dataset/copy_rows.h"

#include <gmock/gmock.h>

#include "hearth/batch/row_hash.h"
#include "hearth/dataset/testing/dataset_testing.h"

namespace hearth::dataset {
namespace {

using ::testing::HasSubstr;

// A partition of two batches, whose rows are taken by index.
class TwoBatches {
 public:
  TwoBatches(batch::BatchBuilder& first, batch::BatchBuilder& second) {
    attempt_.Write(first).Write(second).Announce(rows_, true);
  }
  std::shared_ptr<const SelectedRows> Select(std::vector<int64_t> indices) {
    return rows_.Select(std::move(indices));
  }

 private:
  DatasetRows rows_{{0}, 10};
  Attempt attempt_{0, 0};
};

TEST(CopyRows, CopiesRowsOfSeveralBatchesAsOne) {
  batch::BatchBuilder first, second;
  first.AddInt64("a", {1, 2}, {false, true})
      .AddFloatList("x", {{1, 2}, {3}})
      .AddString("s", {"one", "two"});
  second.AddInt64("a", {3, 4})
      .AddFloatList("x", {{}, {4, 5, 6}}, {true, false})
      .AddString("s", {"three", ""});
  TwoBatches batches(first, second);
  batch::BatchBuilder expected;
  expected.AddInt64("a", {4, 1, 2, 3}, {false, false, true, false})
      .AddFloatList("x", {{4, 5, 6}, {1, 2}, {3}, {}}, {false, false, false, true})
      .AddString("s", {"", "one", "two", "three"});
  const auto rows = batches.Select({3, 0, 1, 2});
  const auto copy = CopyRows(*rows, std::nullopt);
  EXPECT_EQ(batch::HashBatch(0, *copy), batch::HashBatch(0, *expected.Build()));
  const auto some = CopyRows(*rows, std::vector<std::string>{"s"});
  ASSERT_EQ(some->columns().size(), 1);
  EXPECT_EQ(some->column("s").Bytes(3), "three");
  EXPECT_EQ(CopyRows(*batches.Select({}), std::nullopt)->rows(), 0);
}

TEST(CopyRows, NamesAnUnknownColumn) {
  batch::BatchBuilder first, second;
  first.AddInt64("a", {1});
  second.AddInt64("a", {2});
  TwoBatches batches(first, second);
  const auto rows = batches.Select({0, 1});
  const Error error = Thrown([&] { CopyRows(*rows, std::vector<std::string>{"b"}); });
  EXPECT_EQ(error.code(), ErrorCode::kInvalidArgument);
  EXPECT_THAT(error.message(), HasSubstr("'b'"));
}

TEST(CopyRuns, CopiesASelectionOfColumnsAndRows) {
  batch::BatchBuilder rows;
  rows.AddInt64("a", {1, 2, 3}).AddString("s", {"one", "two", "three"});
  const auto batch = rows.Build();
  const auto copy = CopyRuns({{batch.get(), 2, 1}, {batch.get(), 0, 2}}, {1});
  ASSERT_EQ(copy->columns().size(), 1u);
  ASSERT_EQ(copy->rows(), 3);
  EXPECT_EQ(copy->column("s").Bytes(0), "three");
  EXPECT_EQ(copy->column("s").Bytes(2), "two");
}

}  // namespace
}  // namespace hearth::dataset
