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
using ::testing::HasSubstr;

// Both sides in one process; each can be closed as if its process died.
class RingTest : public ::testing::Test {
 protected:
  void Open(size_t capacity, size_t block = size_t{4} << 20) {
    RingEnds ends = CreateRing(capacity);
    memory_ = ends.writer.Duplicate().memory;
    writer_ = std::make_unique<RingWriter>(std::move(ends.writer), block);
    reader_ = std::make_unique<RingReader>(std::move(ends.reader));
  }

  bool Write(BatchBuilder& rows) { return WriteRows(*writer_, rows); }
  bool WriteNumbers(int32_t first, int32_t count, Deadline deadline = Soon()) {
    return ring::WriteNumbers(*writer_, first, count, deadline);
  }

  Fd memory_;
  std::unique_ptr<RingWriter> writer_;
  std::unique_ptr<RingReader> reader_;
};

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

TEST_F(RingTest, EmptyBatchWritesNothing) {
  Open(1 << 20);
  EXPECT_TRUE(WriteNumbers(0, 0));
  EXPECT_TRUE(writer_->WriteEnd(Soon()));
  EXPECT_EQ(reader_->Next(Soon()).kind, EntryKind::kEnd);
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

TEST_F(RingTest, RowLargerThanABlockIsOneEntry) {
  Open(1 << 20, 4 << 10);
  const std::string big(500'000, 'x');
  BatchBuilder rows;
  rows.AddBinary("image", {"a", big, "b"});
  EXPECT_TRUE(Write(rows));
  EXPECT_EQ(BatchView(reader_->Next(Soon()).image).column("image").Bytes(0), "a");
  EXPECT_EQ(BatchView(reader_->Next(Soon()).image).column("image").Bytes(0), big);
  EXPECT_EQ(BatchView(reader_->Next(Soon()).image).column("image").Bytes(0), "b");
}

TEST_F(RingTest, EntryAsLargeAsTheRingFits) {
  Open(64 << 10);
  // Header of the entry, image table of one node and its name, offsets.
  const std::string exact((64 << 10) - 64 - 128 - 64, 'x');
  BatchBuilder rows;
  rows.AddBinary("image", {exact});
  EXPECT_TRUE(WriteNumbers(0, 1)) << "so that the entry wraps around";
  reader_->Next(Soon());
  reader_->Release();
  EXPECT_TRUE(Write(rows));
  EXPECT_EQ(BatchView(reader_->Next(Soon()).image).column("image").Bytes(0), exact);
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

TEST_F(RingTest, PartsReadBeforeADeadlineAreNotLost) {
  Open(64 << 10);
  const std::string big(1'000'000, 'x');
  std::thread feeder([&] {
    BatchBuilder rows;
    rows.AddBinary("image", {big});
    Write(rows);
  });
  std::optional<RingEntry> entry;
  while (!entry) {
    try {
      entry = reader_->Next(Deadline::After(0));
    } catch (const Error& error) {
      ASSERT_EQ(error.code(), ErrorCode::kDeadlineExceeded);
    }
  }
  EXPECT_EQ(BatchView(entry->image).column("image").Bytes(0), big);
  feeder.join();
}

TEST_F(RingTest, WriterOfAStalledReaderStopsAtItsDeadlineAndContinues) {
  Open(64 << 10, 16 << 10);
  const Error error = Thrown([&] { WriteNumbers(0, 100'000, Deadline::After(0.1)); });
  EXPECT_EQ(error.code(), ErrorCode::kDeadlineExceeded);
  EXPECT_THAT(error.message(), HasSubstr("reader took too few rows"));
  while (BatchView(reader_->Next(Soon()).image).column("n").AsInt64(0) < 12'000) {
  }
  reader_->Release();
  EXPECT_TRUE(WriteNumbers(7, 1));
  EXPECT_EQ(BatchView(reader_->Next(Soon()).image).column("n").AsInt64(0), 7);
}

TEST_F(RingTest, ReaderOfAnIdleWriterStopsAtItsDeadline) {
  Open(1 << 20);
  EXPECT_EQ(CodeOf([&] { reader_->Next(Deadline::After(0.05)); }), ErrorCode::kDeadlineExceeded);
}

TEST_F(RingTest, WriterDeathIsReportedAfterItsRows) {
  Open(1 << 20);
  WriteNumbers(5, 1);
  writer_.reset();
  EXPECT_EQ(BatchView(reader_->Next(Soon()).image).column("n").AsInt64(0), 5);
  const Error error = Thrown([&] { reader_->Next(Soon()); });
  EXPECT_EQ(error.code(), ErrorCode::kUnavailable);
  EXPECT_THAT(error.message(), HasSubstr("before the end of its rows"));
}

TEST_F(RingTest, ReaderDeathWakesAWaitingWriter) {
  Open(64 << 10, 16 << 10);
  std::thread death([&] {
    reader_->Next(Soon());
    reader_.reset();
  });
  EXPECT_EQ(CodeOf([&] { WriteNumbers(0, 10'000'000); }), ErrorCode::kUnavailable);
  death.join();
}

TEST_F(RingTest, ReaderDeathIsReportedIfThereIsSpace) {
  Open(1 << 20);
  reader_.reset();
  EXPECT_EQ(CodeOf([&] { WriteNumbers(0, 1); }), ErrorCode::kUnavailable);
}

TEST_F(RingTest, ClosingReaderEndsTheWriterWithoutAnError) {
  Open(64 << 10, 16 << 10);
  std::thread enough([&] {
    reader_->Next(Soon());
    reader_->Close();
  });
  EXPECT_FALSE(WriteNumbers(0, 10'000'000));
  enough.join();
  EXPECT_FALSE(writer_->WriteEnd(Soon()));
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

TEST_F(RingTest, FeederErrorIsThrownBeforeBufferedRows) {
  Open(1 << 20);
  WriteNumbers(0, 1);
  writer_->Fail(Error(ErrorCode::kNotFound, "there is no column 'label'"));
  writer_->Fail(Error(ErrorCode::kInternal, "a later failure"));
  const Error error = Thrown([&] { reader_->Next(Soon()); });
  EXPECT_EQ(error.code(), ErrorCode::kNotFound);
  EXPECT_EQ(error.message(), "there is no column 'label'");
}

TEST_F(RingTest, FailureWakesAWaitingReader) {
  Open(1 << 20);
  std::thread feeder([&] { writer_->Fail(Error(ErrorCode::kInternal, "x")); });
  EXPECT_EQ(CodeOf([&] { reader_->Next(Soon()); }), ErrorCode::kInternal);
  feeder.join();
}

TEST_F(RingTest, DamagedControlWordsAndEntriesAreRejected) {
  const auto damaged = [&](const std::function<void(const RingMemory&)>& damage) {
    Open(64 << 10);
    WriteNumbers(0, 10);
    damage(RingMemory(memory_));
    return CodeOf([&] { reader_->Next(Soon()); });
  };
  const auto header = [](const RingMemory& ring) {
    return reinterpret_cast<EntryHeader*>(ring.At(0));
  };
  EXPECT_EQ(damaged([&](auto& ring) { header(ring)->kind = 77; }), ErrorCode::kDataLoss);
  EXPECT_EQ(damaged([&](auto& ring) {
              header(ring)->kind = static_cast<uint32_t>(EntryKind::kPart);
              header(ring)->bytes = 0;
            }),
            ErrorCode::kDataLoss)
      << "a part without data";
  EXPECT_EQ(damaged([&](auto& ring) {
              header(ring)->kind = static_cast<uint32_t>(EntryKind::kPart);
              writer_->WriteFlush(Soon());
            }),
            ErrorCode::kDataLoss)
      << "a batch without its last part";
  EXPECT_EQ(damaged([&](auto& ring) { header(ring)->bytes = 1 << 20; }), ErrorCode::kDataLoss);
  EXPECT_EQ(damaged([&](auto& ring) { header(ring)->bytes = ~0ull; }), ErrorCode::kDataLoss);
  EXPECT_EQ(damaged([&](auto& ring) { ring.control().written = 1ull << 40; }),
            ErrorCode::kDataLoss);
  EXPECT_EQ(damaged([&](auto& ring) { ring.control().written = 8; }), ErrorCode::kDataLoss);
  EXPECT_EQ(damaged([&](auto& ring) {
              header(ring)->bytes = 8;
              ring.control().written = 64 + 8;
            }),
            ErrorCode::kDataLoss)
      << "without its padding";

  Open(64 << 10);
  RingMemory(memory_).control().released = 1ull << 40;
  EXPECT_EQ(CodeOf([&] { WriteNumbers(0, 1); }), ErrorCode::kDataLoss);
}

}  // namespace
}  // namespace hearth::ring
