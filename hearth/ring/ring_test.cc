#include "hearth/ring/ring.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <cstring>
#include <optional>
#include <string>
#include <thread>

#include "hearth/base/testing/deadline_testing.h"
#include "hearth/base/testing/error_testing.h"
#include "hearth/batch/batch_builder.h"
#include "hearth/batch/batch_view.h"
#include "hearth/ring/ring_reader.h"
#include "hearth/ring/ring_writer.h"
#include "hearth/ring/testing/ring_testing.h"

namespace hearth::ring {
namespace {

using batch::BatchBuilder;
using batch::BatchView;

TEST_F(RingTest, DeliversBatchesMarksAndEndInOrder) {
  Open(1 << 20);
  EXPECT_TRUE(WriteNumbers(0, 3));
  EXPECT_TRUE(writer_->WriteFlush(Soon()));
  EXPECT_TRUE(WriteNumbers(3, 1));
  EXPECT_TRUE(writer_->WriteEnd(Soon()));
  const RingEntry entry = reader_->Next(Soon());
  ASSERT_EQ(entry.kind, EntryKind::kBatch);
  EXPECT_EQ(BatchView(entry.image).column("n").AsInt64(2), 2);
  EXPECT_EQ(reader_->Next(Soon()).kind, EntryKind::kFlush);
  EXPECT_EQ(BatchView(reader_->Next(Soon()).image).column("n").AsInt64(0), 3);
  EXPECT_EQ(reader_->Next(Soon()).kind, EntryKind::kEnd);
  EXPECT_EQ(reader_->Next(Soon()).kind, EntryKind::kEnd) << "the end must stay the end";
}

TEST_F(RingTest, TransfersManyTimesItsCapacity) {
  Open(64 << 10, 8 << 10);
  constexpr int32_t kRows = 3'000'000;  // 12 MB through 64 KiB
  std::thread feeder([&] {
    for (int32_t first = 0; first < kRows; first += 100'000) WriteNumbers(first, 100'000);
    writer_->WriteEnd(Soon());
  });
  int64_t next = 0;
  bool in_order = true;
  for (;;) {
    const RingEntry entry = reader_->Next(Soon());
    if (entry.kind == EntryKind::kEnd) break;
    EXPECT_LE(entry.image.size(), size_t{8} << 10);
    const BatchView batch(entry.image);
    for (int64_t row = 0; row < batch.rows(); ++row) {
      in_order &= batch.columns()[0].AsInt64(row) == next++;
    }
  }
  feeder.join();
  EXPECT_EQ(next, kRows);
  EXPECT_TRUE(in_order);
}

TEST_F(RingTest, LargeTransfersTouchLittleMemory) {
  Open(32 << 20);
  std::thread feeder([&] {
    for (int32_t i = 0; i < 30; ++i) WriteNumbers(0, 1'000'000);  // 120 MB
    writer_->WriteEnd(Soon());
  });
  while (reader_->Next(Soon()).kind == EntryKind::kBatch) {
  }
  feeder.join();
  struct stat status = {};
  ASSERT_EQ(::fstat(memory_.get(), &status), 0);
  EXPECT_LE(status.st_blocks * 512, 11 << 20);
}

TEST_F(RingTest, RowsOfAnySizeWrapAroundInOrder) {
  Open(10 << 20);
  constexpr size_t kSizes[] = {9 << 20, 3 << 20, 100, 7 << 20, 1 << 20};
  std::thread feeder([&] {
    for (int turn = 0; turn < 4; ++turn) {
      for (const size_t size : kSizes) {
        BatchBuilder rows;
        rows.AddBinary("image", {std::string(size, static_cast<char>('a' + turn))});
        Write(rows);
      }
    }
    writer_->WriteEnd(Soon());
  });
  for (int turn = 0; turn < 4; ++turn) {
    for (const size_t size : kSizes) {
      const RingEntry entry = reader_->Next(Soon());
      EXPECT_EQ(BatchView(entry.image).column("image").Bytes(0),
                std::string(size, static_cast<char>('a' + turn)));
    }
  }
  EXPECT_EQ(reader_->Next(Soon()).kind, EntryKind::kEnd);
  feeder.join();
}

TEST_F(RingTest, RowLargerThanTheRingIsSentInParts) {
  Open(64 << 10);
  std::string big(1'000'000, 'x');
  for (size_t i = 0; i < big.size(); i += 997) big[i] = static_cast<char>(i);
  std::thread feeder([&] {
    BatchBuilder rows;
    rows.AddBinary("image", {"a", big, "b", big});
    Write(rows);
    writer_->WriteEnd(Soon());
  });
  for (const std::string& image : {std::string("a"), big, std::string("b"), big}) {
    const RingEntry entry = reader_->Next(Soon());
    ASSERT_EQ(entry.kind, EntryKind::kBatch);
    EXPECT_EQ(BatchView(entry.image).column("image").Bytes(0), image);
  }
  EXPECT_EQ(reader_->Next(Soon()).kind, EntryKind::kEnd);
  feeder.join();
}

TEST_F(RingTest, CloseWakesItsOwnWaiter) {
  Open(64 << 10, 16 << 10);
  std::thread closer([&] { reader_->Close(); });
  EXPECT_EQ(CodeOf([&] { reader_->Next(Soon()); }), ErrorCode::kAborted);
  closer.join();

  Open(64 << 10, 16 << 10);
  std::thread other([&] { writer_->Close(); });
  EXPECT_EQ(CodeOf([&] { WriteNumbers(0, 10'000'000); }), ErrorCode::kAborted);
  other.join();
}

}  // namespace
}  // namespace hearth::ring
