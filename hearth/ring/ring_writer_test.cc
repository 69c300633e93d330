#include "hearth/ring/ring_writer.h"

#include <gmock/gmock.h>

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

using RingWriterTest = RingTest;

TEST_F(RingWriterTest, EmptyBatchWritesNothing) {
  Open(1 << 20);
  EXPECT_TRUE(WriteNumbers(0, 0));
  EXPECT_TRUE(writer_->WriteEnd(Soon()));
  EXPECT_EQ(reader_->Next(Soon()).kind, EntryKind::kEnd);
}

TEST_F(RingWriterTest, RowLargerThanABlockIsOneEntry) {
  Open(1 << 20, 4 << 10);
  const std::string big(500'000, 'x');
  BatchBuilder rows;
  rows.AddBinary("image", {"a", big, "b"});
  EXPECT_TRUE(Write(rows));
  EXPECT_EQ(BatchView(reader_->Next(Soon()).image).column("image").Bytes(0), "a");
  EXPECT_EQ(BatchView(reader_->Next(Soon()).image).column("image").Bytes(0), big);
  EXPECT_EQ(BatchView(reader_->Next(Soon()).image).column("image").Bytes(0), "b");
}

TEST_F(RingWriterTest, EntryAsLargeAsTheRingFits) {
  Open(64 << 10);
  // Subtracts the entry's header, the image's table with one node and its name, and the offsets.
  const std::string exact((64 << 10) - 64 - 128 - 64, 'x');
  BatchBuilder rows;
  rows.AddBinary("image", {exact});
  EXPECT_TRUE(WriteNumbers(0, 1)) << "so that the entry wraps around";
  reader_->Next(Soon());
  reader_->Release();
  EXPECT_TRUE(Write(rows));
  EXPECT_EQ(BatchView(reader_->Next(Soon()).image).column("image").Bytes(0), exact);
}

TEST_F(RingWriterTest, WriterOfAStalledReaderStopsAtItsDeadlineAndContinues) {
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

TEST_F(RingWriterTest, ReaderDeathWakesAWaitingWriter) {
  Open(64 << 10, 16 << 10);
  std::thread death([&] {
    reader_->Next(Soon());
    reader_.reset();
  });
  EXPECT_EQ(CodeOf([&] { WriteNumbers(0, 10'000'000); }), ErrorCode::kUnavailable);
  death.join();
}

TEST_F(RingWriterTest, ReaderDeathIsReportedIfThereIsSpace) {
  Open(1 << 20);
  reader_.reset();
  EXPECT_EQ(CodeOf([&] { WriteNumbers(0, 1); }), ErrorCode::kUnavailable);
}

TEST_F(RingWriterTest, ClosingReaderEndsTheWriterWithoutAnError) {
  Open(64 << 10, 16 << 10);
  std::thread enough([&] {
    reader_->Next(Soon());
    reader_->Close();
  });
  EXPECT_FALSE(WriteNumbers(0, 10'000'000));
  enough.join();
  EXPECT_FALSE(writer_->WriteEnd(Soon()));
}

}  // namespace
}  // namespace hearth::ring
