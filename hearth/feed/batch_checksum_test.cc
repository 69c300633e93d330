#include "hearth/feed/batch_checksum.h"

#include <gtest/gtest.h>

#include <set>
#include <vector>

#include "hearth/feed/feed_testing.h"

namespace hearth::feed {
namespace {

using Nulls = BatchBuilder::Nulls;

uint32_t SumOf(BatchBuilder& rows) { return Checksum(*rows.Build()); }

uint32_t SumOfNumbers(const std::vector<int32_t>& values, const Nulls& nulls = {}) {
  BatchBuilder rows;
  return SumOf(rows.AddInt32("n", values, nulls));
}

uint32_t SumOfTexts(const std::vector<std::string>& values) {
  BatchBuilder rows;
  return SumOf(rows.AddString("s", values));
}

TEST(BatchChecksum, TellsRowsThatDifferInAnything) {
  std::set<uint32_t> sums = {
      SumOfNumbers({1, 2, 3}),
      SumOfNumbers({1, 3, 2}),
      SumOfNumbers({1, 2, 4}),
      SumOfNumbers({1, 2}),
      SumOfNumbers({1, 2, 3}, {false, true, false}),
      SumOfNumbers({1, 2, 3}, {false, false, true}),
      SumOfTexts({"ab", "c"}),
      SumOfTexts({"a", "bc"}),
      SumOfTexts({"abc"}),
      SumOfTexts({}),
  };
  EXPECT_EQ(sums.size(), 10u);
}

TEST(BatchChecksum, IsTheSameForEqualRowsWhateverLiesBetweenTheirBuffers) {
  EXPECT_EQ(SumOfNumbers({7, 8, 9}), SumOfNumbers({7, 8, 9}, {false, false, false}));
  // What a ring holds where nothing was written now is left from earlier entries.
  const auto image_sum = [](std::byte fill) {
    BatchBuilder rows;
    rows.AddInt32("n", {1, 2, 3}, {false, true, false}).AddString("s", {"a", "", "b"});
    ArrowSchema schema;
    ArrowArray array;
    rows.Export(&schema, &array);
    const ArrowImage image(schema, array);
    std::vector<std::byte> bytes(image.ImageBytes(0, 3), fill);
    image.Write(0, 3, bytes);
    const uint32_t sum = Checksum(*CopyBatch(bytes));
    array.release(&array);
    schema.release(&schema);
    return sum;
  };
  EXPECT_EQ(image_sum(std::byte{0}), image_sum(std::byte{0xff}));
}

}  // namespace
}  // namespace hearth::feed
