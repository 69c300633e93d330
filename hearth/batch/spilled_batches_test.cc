#include "hearth/batch/spilled_batches.h"

#include <gtest/gtest.h>

#include "hearth/batch/batch_builder.h"
#include "hearth/batch/batch_view.h"
#include "hearth/batch/testing/batch_testing.h"

namespace hearth::batch {
namespace {

void AppendNumber(SpilledBatches& batches, int32_t number) {
  BatchBuilder rows;
  rows.AddInt32("n", {number, number});
  batches.Append(TestImage(rows).bytes());
}

int64_t NumberAt(const SpilledBatches& batches, size_t index) {
  return batches.at(index).column("n").AsInt64(1);
}

TEST(SpilledBatches, KeepOrderAndAddresses) {
  SpilledBatches batches(::testing::TempDir());
  AppendNumber(batches, 0);
  const BatchView* first = &batches.at(0);
  for (int32_t number = 1; number < 100; ++number) AppendNumber(batches, number);
  ASSERT_EQ(batches.size(), 100u);
  EXPECT_EQ(&batches.at(0), first);
  for (size_t index = 0; index < 100; ++index) {
    EXPECT_EQ(NumberAt(batches, index), static_cast<int64_t>(index));
  }
}

TEST(SpilledBatches, AppendAfterTruncateFollowsTheRemainingBatches) {
  SpilledBatches batches(::testing::TempDir());
  for (const int32_t number : {1, 2, 3}) AppendNumber(batches, number);
  batches.Truncate(1);
  EXPECT_EQ(batches.size(), 1u);
  AppendNumber(batches, 4);
  ASSERT_EQ(batches.size(), 2u);
  EXPECT_EQ(NumberAt(batches, 0), 1);
  EXPECT_EQ(NumberAt(batches, 1), 4);
  batches.Truncate(5);
  EXPECT_EQ(batches.size(), 2u);
}

TEST(SpilledBatches, DropPagesAfterManyBytes) {
  constexpr int64_t kBytes = 1 << 20;
  SpilledBatches batches(::testing::TempDir(), 4 * kBytes);
  const int64_t before = ResidentFileBytes();
  BatchBuilder rows;
  rows.AddBinary("b", {std::string(kBytes, 'x')});
  TestImage image(rows);
  int64_t most = 0, seen = 0;
  for (int i = 0; i < 32; ++i) {
    const std::string_view value = batches.Append(image.bytes()).column("b").Bytes(0);
    for (size_t at = 0; at < value.size(); at += 512) seen += value[at] == 'x';
    most = std::max(most, ResidentFileBytes() - before);
  }
  EXPECT_EQ(seen, 32 * kBytes / 512);
  EXPECT_LT(most, 10 * kBytes);
}

}  // namespace
}  // namespace hearth::batch
