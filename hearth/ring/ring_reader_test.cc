#include "hearth/ring/ring_reader.h"

#include <gmock/gmock.h>

#include <functional>
#include <optional>
#include <string>
#include <thread>

#include "hearth/base/testing/error_testing.h"
#include "hearth/batch/batch_view.h"
#include "hearth/ring/testing/ring_testing.h"

namespace hearth::ring {
namespace {

using batch::BatchBuilder;
using batch::BatchView;
using ::testing::HasSubstr;

using RingReaderTest = RingTest;

TEST_F(RingReaderTest, PartsReadBeforeADeadlineAreNotLost) {
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

TEST_F(RingReaderTest, ReaderOfAnIdleWriterStopsAtItsDeadline) {
  Open(1 << 20);
  EXPECT_EQ(CodeOf([&] { reader_->Next(Deadline::After(0.05)); }), ErrorCode::kDeadlineExceeded);
}

TEST_F(RingReaderTest, WriterDeathIsReportedAfterItsRows) {
  Open(1 << 20);
  WriteNumbers(5, 1);
  writer_.reset();
  EXPECT_EQ(BatchView(reader_->Next(Soon()).image).column("n").AsInt64(0), 5);
  const Error error = Thrown([&] { reader_->Next(Soon()); });
  EXPECT_EQ(error.code(), ErrorCode::kUnavailable);
  EXPECT_THAT(error.message(), HasSubstr("before it sent all its rows"));
}

TEST_F(RingReaderTest, FeederErrorIsThrownBeforeBufferedRows) {
  Open(1 << 20);
  WriteNumbers(0, 1);
  writer_->Fail(Error(ErrorCode::kNotFound, "there is no column 'label'"));
  writer_->Fail(Error(ErrorCode::kInternal, "a later failure"));
  const Error error = Thrown([&] { reader_->Next(Soon()); });
  EXPECT_EQ(error.code(), ErrorCode::kNotFound);
  EXPECT_EQ(error.message(), "there is no column 'label'");
}

TEST_F(RingReaderTest, LongErrorsAreCutBetweenCharacters) {
  Open(1 << 20);
  writer_->Fail(Error(ErrorCode::kInternal, std::string(2047, 'x') + "\u00e9 is not ASCII"));
  EXPECT_EQ(Thrown([&] { reader_->Next(Soon()); }).message(), std::string(2047, 'x'));
}

TEST_F(RingReaderTest, FailureWakesAWaitingReader) {
  Open(1 << 20);
  std::thread feeder([&] { writer_->Fail(Error(ErrorCode::kInternal, "x")); });
  EXPECT_EQ(CodeOf([&] { reader_->Next(Soon()); }), ErrorCode::kInternal);
  feeder.join();
}

TEST_F(RingReaderTest, DamagedControlWordsAndEntriesAreRejected) {
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
