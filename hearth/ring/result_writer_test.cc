#include "hearth/ring/result_writer.h"

#include <gmock/gmock.h>

#include "hearth/base/testing/deadline_testing.h"
#include "hearth/base/testing/error_testing.h"
#include "hearth/batch/batch_view.h"
#include "hearth/ring/ring_reader.h"

namespace hearth::ring {
namespace {

using batch::BatchView;

TEST(ResultWriter, RowsOfAPartitionComeBeforeItsMark) {
  RingEnds ends = CreateRing(1 << 20);
  RingReader reader(std::move(ends.reader));
  ResultWriter results(std::move(ends.writer), "SampleID", {"ip1", "prob"});
  const std::vector<float> first = {1, 2, 3};
  const std::vector<float> second = {4};
  EXPECT_TRUE(results.Add("00000000", {first, second}, Soon()));
  EXPECT_TRUE(results.Add("00000001", {second, {}}, Soon()));
  EXPECT_TRUE(results.Flush(Soon()));
  EXPECT_TRUE(results.Flush(Soon())) << "an empty partition";
  EXPECT_TRUE(results.Add("00000002", {first, first}, Soon()));
  EXPECT_TRUE(results.End(Soon()));

  const BatchView batch(reader.Next(Soon()).image);
  std::vector<float> scratch;
  EXPECT_EQ(batch.rows(), 2);
  EXPECT_EQ(batch.columns()[0].name(), "SampleID");
  EXPECT_EQ(batch.column("SampleID").Bytes(1), "00000001");
  EXPECT_EQ(batch.column("ip1").FloatList(0, &scratch)[2], 3);
  EXPECT_EQ(batch.column("prob").ListLength(1), 0);
  EXPECT_EQ(reader.Next(Soon()).kind, EntryKind::kFlush);
  EXPECT_EQ(reader.Next(Soon()).kind, EntryKind::kFlush);
  EXPECT_EQ(BatchView(reader.Next(Soon()).image).column("ip1").ListLength(0), 3);
  EXPECT_EQ(reader.Next(Soon()).kind, EntryKind::kEnd);
}

TEST(ResultWriter, LargeResultsDoNotWaitForTheMark) {
  RingEnds ends = CreateRing(8 << 20);
  RingReader reader(std::move(ends.reader));
  ResultWriter results(std::move(ends.writer), "id", {"x"});
  const std::vector<float> values(100'000, 1.0f);
  for (int i = 0; i < 4; ++i) EXPECT_TRUE(results.Add("row", {values}, Soon()));
  EXPECT_EQ(BatchView(reader.Next(Soon()).image).rows(), 3) << "more than 1 MiB";
}

TEST(ResultWriter, WrongNumberOfOutputsIsRejected) {
  ResultWriter results(CreateRing(1 << 20).writer, "id", {"x"});
  EXPECT_EQ(CodeOf([&] { results.Add("row", {}, Soon()); }), ErrorCode::kInternal);
}

}  // namespace
}  // namespace hearth::ring
