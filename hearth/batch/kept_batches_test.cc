#include "hearth/batch/kept_batches.h"

#include <gtest/gtest.h>

#include "hearth/batch/batch_builder.h"
#include "hearth/batch/batch_view.h"
#include "hearth/batch/testing/batch_testing.h"

namespace hearth::batch {
namespace {

void Keep(KeptBatches& kept, int32_t number) {
  BatchBuilder rows;
  rows.AddInt32("n", {number, number});
  kept.Append(TestImage(rows).bytes());
}

int64_t NumberAt(const KeptBatches& kept, size_t index) {
  return kept.at(index).column("n").AsInt64(1);
}

TEST(KeptBatches, ComeBackInTheirOrderFromWhereTheyWereFirst) {
  KeptBatches kept(::testing::TempDir());
  Keep(kept, 0);
  const BatchView* first = &kept.at(0);
  for (int32_t number = 1; number < 100; ++number) Keep(kept, number);
  ASSERT_EQ(kept.size(), 100u);
  EXPECT_EQ(&kept.at(0), first);
  for (size_t index = 0; index < 100; ++index) {
    EXPECT_EQ(NumberAt(kept, index), static_cast<int64_t>(index));
  }
}

TEST(KeptBatches, OthersFollowThoseThatWereNotTakenBack) {
  KeptBatches kept(::testing::TempDir());
  for (const int32_t number : {1, 2, 3}) Keep(kept, number);
  kept.TakeBack(1);
  EXPECT_EQ(kept.size(), 1u);
  Keep(kept, 4);
  ASSERT_EQ(kept.size(), 2u);
  EXPECT_EQ(NumberAt(kept, 0), 1);
  EXPECT_EQ(NumberAt(kept, 1), 4);
  kept.TakeBack(5);
  EXPECT_EQ(kept.size(), 2u);
}

TEST(KeptBatches, PagesAreDroppedOnceManyBytesWereTouched) {
  constexpr int64_t kBytes = 1 << 20;
  KeptBatches kept(::testing::TempDir(), 4 * kBytes);
  const int64_t before = ResidentFileBytes();
  BatchBuilder rows;
  rows.AddBinary("b", {std::string(kBytes, 'x')});
  TestImage image(rows);
  int64_t most = 0, seen = 0;
  for (int i = 0; i < 32; ++i) {
    const std::string_view value = kept.Append(image.bytes()).column("b").Bytes(0);
    for (size_t at = 0; at < value.size(); at += 512) seen += value[at] == 'x';
    most = std::max(most, ResidentFileBytes() - before);
  }
  EXPECT_EQ(seen, 32 * kBytes / 512);
  EXPECT_LT(most, 10 * kBytes);
}

}  // namespace
}  // namespace hearth::batch
