#include "hearth/dataset/partition_rows.h"

#include <gmock/gmock.h>

#include "hearth/dataset/testing/dataset_testing.h"

namespace hearth::dataset {
namespace {

TEST(PartitionRowsTest, FindsEveryRowOfManySmallBatches) {
  Attempt attempt(3, 1);
  PartitionRows rows(3, 1, Duplicate(attempt.file()));
  int32_t next = 0;
  for (int32_t count = 1; count <= 60; ++count) {  // more rows than one stride
    attempt.Write(next, count);
    next += count;
    rows.Add(rows.ReadTo(attempt.committed()));
  }
  ASSERT_EQ(rows.rows(), next);
  for (int32_t row = 0; row < next; ++row) {
    const PartitionRows::RowRef found = rows.At(row);
    ASSERT_EQ(found.batch->column("n").AsInt64(found.row), row);
  }
}

TEST(PartitionRowsTest, ReadsOnlyWhatIsNew) {
  Attempt attempt(0, 0);
  PartitionRows rows(0, 0, Duplicate(attempt.file()));
  EXPECT_EQ(rows.ReadTo(attempt.Write(0, 10).committed()).size(), 1u);
  EXPECT_EQ(rows.ReadTo(attempt.committed()).size(), 0u);
  const auto more = rows.ReadTo(attempt.Write(10, 5).committed());
  ASSERT_EQ(more.size(), 1u);
  EXPECT_EQ(more[0].rows(), 5);
}

TEST(PartitionRowsTest, ThePrefixHashIsThatOfAShorterPartition) {
  Attempt whole(0, 0), shorter(0, 1);
  whole.Write(0, 10).Write(10, 10);
  shorter.Write(0, 13);
  PartitionRows rows(0, 0, Duplicate(whole.file()));
  rows.Add(rows.ReadTo(whole.committed()));
  EXPECT_EQ(rows.HashOf(13), shorter.hash());
  EXPECT_EQ(rows.HashOf(1000), whole.hash());
  EXPECT_EQ(HashOfFile(0, Duplicate(whole.file()), whole.committed()), whole.hash());
}

// Another process may announce wrong numbers for its file.
TEST(PartitionRowsTest, NamesThePartitionWhoseFileDoesNotMatch) {
  Attempt attempt(3, 1);
  attempt.Write(0, 10);
  const Committed right = attempt.committed();
  for (const Committed& wrong : {Committed{right.bytes + 64, 10}, Committed{right.bytes, 11},
                                 Committed{right.bytes - 1, 10}, Committed{0, 10}}) {
    PartitionRows rows(3, 1, Duplicate(attempt.file()));
    const Error error = Thrown([&] { rows.ReadTo(wrong); });
    EXPECT_EQ(error.code(), ErrorCode::kDataLoss) << wrong.bytes;
    EXPECT_THAT(error.message(), ::testing::HasSubstr("partition 3 (attempt 1)"));
  }
  PartitionRows rows(3, 1, Duplicate(attempt.file()));
  rows.ReadTo(right);
  EXPECT_EQ(CodeOf([&] { rows.ReadTo({0, 0}); }), ErrorCode::kDataLoss) << "it went backwards";
}

}  // namespace
}  // namespace hearth::dataset
