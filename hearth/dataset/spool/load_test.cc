// Load tests: many rows in constant memory.
#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <numeric>
#include <optional>
#include <string>
#include <vector>

#include "hearth/base/thread.h"
#include "hearth/batch/batch_builder.h"
#include "hearth/batch/testing/batch_testing.h"
#include "hearth/dataset/spool/minibatch.h"
#include "hearth/dataset/spool/ring_source.h"
#include "hearth/dataset/spool/spool_source.h"
#include "hearth/dataset/spool/streamed_source.h"
#include "hearth/ring/ring_writer.h"
#include "hearth/ring/testing/ring_testing.h"

namespace hearth::dataset {
namespace {

using batch::ResidentFileBytes;
using ring::CreateRing;
using ring::RingEnds;
using ring::RingWriter;

constexpr int64_t kLoadRows = 10'000'000;
constexpr int32_t kRowsPerBatch = 20'000;
constexpr int64_t kBatchSize = 1000;
constexpr size_t kRingBytes = 4 << 20;
constexpr int64_t kMegabyte = 1 << 20;

// Anonymous memory of this process, in bytes.
int64_t ResidentOwnBytes() {
  std::ifstream status("/proc/self/status");
  for (std::string name; status >> name;) {
    int64_t kilobytes = 0;
    if (name == "RssAnon:" && status >> kilobytes) return kilobytes << 10;
  }
  return -1;
}

void WriteAll(RingWriter& writer) {
  for (int64_t first = 0; first < kLoadRows; first += kRowsPerBatch) {
    batch::BatchBuilder rows;
    std::vector<int32_t> numbers(kRowsPerBatch);
    std::iota(numbers.begin(), numbers.end(), static_cast<int32_t>(first));
    rows.AddInt32("n", numbers).AddDouble("x", std::vector<double>(kRowsPerBatch));
    ring::WriteRows(writer, rows, Deadline::After(60));
  }
}

Thread FeedAll(ring::RingEnd end) {
  auto writer = std::make_shared<RingWriter>(std::move(end));
  return Thread("feeder", [writer] {
    WriteAll(*writer);
    writer->WriteEnd(Deadline::After(60));
  });
}

struct Taken {
  int64_t rows = 0, sum = 0, most_memory = 0, most_mapped = 0;
};

Taken TakeOneEpoch(MinibatchSource& source) {
  Taken taken;
  Minibatch minibatch;
  while (source.Next(kBatchSize, &minibatch) > 0) {
    for (const auto& row : minibatch.rows) taken.sum += row.batch->columns()[0].AsInt64(row.index);
    taken.rows += minibatch.size();
    if (taken.rows % 100'000 == 0) {
      taken.most_memory = std::max(taken.most_memory, ResidentOwnBytes());
      taken.most_mapped = std::max(taken.most_mapped, ResidentFileBytes());
    }
  }
  return taken;
}

TEST(FeedLoad, TenMillionRowsThroughARingTakeNoMemory) {
  RingEnds ends = CreateRing(kRingBytes);
  const int64_t before = ResidentOwnBytes();
  const int64_t mapped_before = ResidentFileBytes();
  Thread feeder = FeedAll(std::move(ends.writer));
  RingSource source(std::move(ends.reader), 60);
  const Taken taken = TakeOneEpoch(source);
  feeder.Join();
  EXPECT_EQ(taken.rows, kLoadRows);
  EXPECT_EQ(taken.sum, kLoadRows * (kLoadRows - 1) / 2);
  EXPECT_GT(taken.most_memory, 0);
  EXPECT_LT(taken.most_memory - before, 16 * kMegabyte);
  // Most of these pages belong to the ring, which both sides map.
  EXPECT_LT(ResidentFileBytes() - mapped_before, 5 * static_cast<int64_t>(kRingBytes));
}

TEST(FeedLoad, TenMillionRowsInTwoEpochsOfASpoolTakeLittleMemory) {
  RingEnds ends = CreateRing(kRingBytes);
  const int64_t before = ResidentOwnBytes();
  const int64_t mapped_before = ResidentFileBytes();
  SpoolOptions options;
  options.resident_bytes = 16 * kMegabyte;
  options.directory = ::testing::TempDir();
  auto spool = std::make_shared<Spool>(std::move(ends.reader), options);
  Thread feeder = FeedAll(std::move(ends.writer));
  SpoolSource source(spool, {true, 1});
  for (int epoch = 0; epoch < 2; ++epoch) {
    const Taken taken = TakeOneEpoch(source);
    EXPECT_EQ(taken.rows, kLoadRows);
    EXPECT_EQ(taken.sum, kLoadRows * (kLoadRows - 1) / 2);
    EXPECT_LT(taken.most_memory - before, 16 * kMegabyte);
    // These are the resident part of the spool's 120 MB and the pages of the ring.
    EXPECT_LT(taken.most_mapped - mapped_before, 60 * kMegabyte);
    if (epoch == 0) source.NextEpoch();
  }
  feeder.Join();
}

TEST(FeedLoad, StreamedEpochsTakeTwoWindows) {
  RingEnds ends = CreateRing(kRingBytes);
  const int64_t before = ResidentOwnBytes();
  const int64_t mapped_before = ResidentFileBytes();
  RingWriter writer(std::move(ends.writer));
  std::optional<Thread> feeder;
  StreamedSource source(std::move(ends.reader), {}, [&](int64_t) {
    feeder.emplace("feeder", [&] {
      for (int epoch = 0; epoch < 2; ++epoch) {
        WriteAll(writer);
        writer.WriteFlush(Deadline::After(60));
      }
    });
  });
  source.BeginAt(0);
  for (int epoch = 0; epoch < 2; ++epoch) {
    const Taken taken = TakeOneEpoch(source);
    EXPECT_EQ(taken.rows, kLoadRows);
    EXPECT_EQ(taken.sum, kLoadRows * (kLoadRows - 1) / 2);
    EXPECT_LT(taken.most_memory - before, 16 * kMegabyte);
    EXPECT_LT(taken.most_mapped - mapped_before, 5 * static_cast<int64_t>(kRingBytes));
    source.NextEpoch();
  }
  feeder->Join();
}

}  // namespace
}  // namespace hearth::dataset
