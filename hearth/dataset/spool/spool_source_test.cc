#include "hearth/dataset/spool/spool_source.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <thread>

#include "hearth/base/testing/deadline_testing.h"
#include "hearth/batch/testing/batch_testing.h"
#include "hearth/dataset/spool/minibatch.h"
#include "hearth/dataset/spool/round_robin_sources.h"
#include "hearth/dataset/spool/testing/source_testing.h"
#include "hearth/ring/ring_writer.h"
#include "hearth/ring/testing/ring_testing.h"

namespace hearth::dataset {
namespace {

using ring::CreateRing;
using ring::RingEnds;
using ring::RingWriter;
using ring::WriteNumbers;

// A spool of rows 0, 1, 2, ... that arrive in batches of these sizes, separated by flush marks.
std::shared_ptr<Spool> SpoolOf(const std::vector<int>& batch_sizes) {
  RingEnds ends = CreateRing(64 << 10);
  auto spool =
      std::make_shared<Spool>(std::move(ends.reader), SpoolOptions{::testing::TempDir(), 10});
  RingWriter writer(std::move(ends.writer));
  int32_t next = 0;
  for (const int size : batch_sizes) {
    WriteNumbers(writer, next, size);
    writer.WriteFlush(Soon());
    next += size;
  }
  writer.WriteEnd(Soon());
  spool->WaitComplete();
  return spool;
}

TEST(SpoolSource, FirstEpochIsInOrderAndLaterOnesAreShuffled) {
  const auto spool = SpoolOf({30, 0, 70});
  SpoolSource source(spool, {true, 1});
  EXPECT_EQ(TakeEpoch(source, 8), UpTo(100));
  source.NextEpoch();
  EXPECT_EQ(source.epoch(), 1);
  const auto second = TakeEpoch(source, 8);
  source.NextEpoch();
  const auto third = TakeEpoch(source, 8);
  EXPECT_NE(second, UpTo(100));
  EXPECT_NE(second, third);

  SpoolSource again(spool, {true, 1});
  again.NextEpoch();  // the first epoch's rows are skipped
  EXPECT_EQ(TakeEpoch(again, 5), second) << "for any batch size";
  SpoolSource other(spool, {true, 2});
  other.NextEpoch();
  EXPECT_NE(TakeEpoch(other, 8), second);
}

TEST(SpoolSource, EveryRowComesOncePerEpochForAnyBatchSizes) {
  std::vector<int> sizes;
  for (int i = 0; i < 300; ++i)
    sizes.push_back(i % 7);  // much shorter than a stride of the spool's index
  sizes.push_back(2000);     // longer than a stride
  sizes.push_back(1);
  const auto spool = SpoolOf(sizes);
  const int64_t rows = spool->WaitComplete();
  for (const bool shuffle : {false, true}) {
    SpoolSource source(spool, {shuffle, 1});
    for (int epoch = 0; epoch < 3; ++epoch) {
      EXPECT_EQ(Sorted(TakeEpoch(source, 64)), UpTo(rows)) << epoch;
      source.NextEpoch();
    }
  }
}

TEST(SpoolSource, ResidentMemoryStaysNearItsLimitInEveryEpoch) {
  constexpr int64_t kLimit = 4 << 20;
  constexpr int64_t kRows = 8'000'000;  // 32 MB
  RingEnds ends = CreateRing(1 << 20);
  SpoolOptions options = {::testing::TempDir(), 10, kLimit};
  auto spool = std::make_shared<Spool>(std::move(ends.reader), options);
  std::thread feeder([&] {
    RingWriter writer(std::move(ends.writer));
    WriteNumbers(writer, 0, kRows);
    writer.WriteEnd(Soon());
  });
  feeder.join();
  SpoolSource source(spool, {false, 1});
  for (int epoch = 0; epoch < 2; ++epoch) {
    Minibatch minibatch;
    int64_t sum = 0;
    int64_t most = 0;
    const int64_t before = batch::ResidentFileBytes();
    while (source.Next(100'000, &minibatch) > 0) {
      for (const Minibatch::Row& row : minibatch.rows) {
        sum += row.batch->columns()[0].AsInt64(row.index);
      }
      most = std::max(most, batch::ResidentFileBytes() - before);
    }
    EXPECT_EQ(sum, kRows * (kRows - 1) / 2);
    EXPECT_LT(most, 3 * kLimit) << epoch;
    source.NextEpoch();
  }
}

TEST(SpoolSource, WithoutShuffleEveryEpochIsTheFirst) {
  SpoolSource source(SpoolOf({3, 4}), {false, 1});
  TakeEpoch(source, 2);
  source.NextEpoch();
  EXPECT_EQ(TakeEpoch(source, 2), UpTo(7));
}

TEST(SpoolSource, FirstEpochDeliversRowsWhileTheFeederSends) {
  RingEnds ends = CreateRing(64 << 10);
  SpoolSource source(
      std::make_shared<Spool>(std::move(ends.reader), SpoolOptions{::testing::TempDir(), 10}), {});
  RingWriter writer(std::move(ends.writer));
  WriteNumbers(writer, 0, 5);
  Minibatch minibatch;
  EXPECT_EQ(source.Next(4, &minibatch), 4);
  writer.WriteEnd(Soon());
  EXPECT_EQ(source.Next(4, &minibatch), 1);
}

TEST(SpoolSource, DeviceNeedsOnlyRowsUpToItsMinibatch) {
  RingEnds ends = CreateRing(64 << 10);
  const auto sources = RoundRobinSources(
      std::make_shared<SpoolSource>(
          std::make_shared<Spool>(std::move(ends.reader), SpoolOptions{::testing::TempDir(), 1}),
          ReplayOptions{}),
      2);
  RingWriter writer(std::move(ends.writer));
  WriteNumbers(writer, 0, 4);
  Minibatch minibatch;
  EXPECT_EQ(sources[0]->Next(4, &minibatch), 4) << "without the rows of the second device";
}

// Guarantee of the feed: each row once per epoch, for any split into rows, batches and devices.
TEST(SpoolSource, ReturnsEveryRowOncePerEpochForAnyPartitionsBatchSizesAndDevices) {
  const std::vector<std::vector<int>> partitions = {
      {}, {0}, {1}, {2, 0, 1}, {7}, {0, 0, 16, 0}, {5, 5, 5}, {1, 1, 1, 1, 1}, {64, 1}, {100, 27}};
  for (const auto& sizes : partitions) {
    const int64_t rows = std::accumulate(sizes.begin(), sizes.end(), 0);
    const auto spool = SpoolOf(sizes);
    for (const int64_t batch_size : {1, 2, 3, 8, 64, 1000}) {
      for (const int devices : {1, 2, 3, 5}) {
        auto sources =
            RoundRobinSources(std::make_shared<SpoolSource>(spool, ReplayOptions{}), devices);
        for (int epoch = 0; epoch < 3; ++epoch) {
          std::vector<int64_t> seen;
          for (auto& source : sources) {
            for (int64_t number : TakeEpoch(*source, batch_size)) seen.push_back(number);
          }
          ASSERT_EQ(Sorted(seen), UpTo(rows)) << rows << "/" << batch_size << "/" << devices;
          for (auto& source : sources) source->NextEpoch();
        }
      }
    }
  }
}

}  // namespace
}  // namespace hearth::dataset
