#include "hearth/dataset/spool/spool.h"

#include <gmock/gmock.h>

#include <optional>
#include <thread>

#include "hearth/base/testing/deadline_testing.h"
#include "hearth/base/testing/error_testing.h"
#include "hearth/batch/batch_builder.h"
#include "hearth/batch/row_hash.h"
#include "hearth/dataset/spool/minibatch.h"
#include "hearth/dataset/spool/slice_source.h"
#include "hearth/dataset/spool/testing/source_testing.h"
#include "hearth/ring/ring_writer.h"
#include "hearth/ring/testing/ring_testing.h"

namespace hearth::dataset {
namespace {

using batch::HashRows;
using ring::WriteNumbers;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

class SpoolTest : public ::testing::Test {
 protected:
  void Open(double timeout_s = 10) {
    ring::RingEnds ends = ring::CreateRing(64 << 10);
    writer_.emplace(std::move(ends.writer));
    spool_ = std::make_shared<Spool>(std::move(ends.reader),
                                     SpoolOptions{::testing::TempDir(), timeout_s});
  }

  std::optional<ring::RingWriter> writer_;
  std::shared_ptr<Spool> spool_;
};

TEST_F(SpoolTest, DrainsTheFeederWithoutAReader) {
  Open();
  WriteNumbers(*writer_, 0, 1'000'000);  // 4 MB through a ring of 64 KiB
  writer_->WriteFlush(Soon());
  writer_->WriteEnd(Soon());
  EXPECT_EQ(spool_->WaitComplete(), 1'000'000);
  for (const int64_t row : {0, 1, 16'319, 16'320, 500'000, 999'999}) {
    const Minibatch::Row found = spool_->RowAt(row);
    EXPECT_EQ(found.batch->column("n").AsInt64(found.index), row);
  }
}

TEST_F(SpoolTest, RowsAreReadableBeforeTheEnd) {
  Open();
  WriteNumbers(*writer_, 7, 2);
  EXPECT_EQ(spool_->WaitBatch(0)->column("n").AsInt64(1), 8);
  writer_->WriteEnd(Soon());
  EXPECT_EQ(spool_->WaitBatch(1), nullptr);
}

TEST_F(SpoolTest, ReturnsTheHashOfAnyPrefix) {
  Open();
  for (int32_t first = 0; first < 1000; first += 40) WriteNumbers(*writer_, first, 40);
  std::vector<int32_t> numbers(1000);
  std::iota(numbers.begin(), numbers.end(), 0);
  const auto whole = batch::BatchBuilder().AddInt32("n", numbers).Build();
  for (const int64_t rows : {0, 1, 39, 40, 41, 999, 1000}) {  // the end has not arrived yet
    EXPECT_EQ(spool_->DigestOf(rows).hash, HashRows(0, whole->columns(), rows)) << rows;
    EXPECT_EQ(spool_->DigestOf(rows).rows, rows);
  }
  writer_->WriteEnd(Soon());
  const Spool::Digest all = spool_->DigestOf(5000);
  EXPECT_EQ(all.rows, 1000);
  EXPECT_EQ(all.hash, HashRows(0, whole->columns(), 1000));
  EXPECT_EQ(spool_->DigestOf(40).hash, HashRows(0, whole->columns(), 40));
  for (const int64_t row : {0, 39, 40, 555, 999}) {
    const Spool::Digest digest = spool_->DigestUpTo(spool_->RowAt(row));
    EXPECT_EQ(digest.rows, row + 1);
    EXPECT_EQ(digest.hash, HashRows(0, whole->columns(), row + 1));
  }
}

TEST_F(SpoolTest, NoRowsAtAllAreComplete) {
  Open();
  writer_->WriteEnd(Soon());
  EXPECT_EQ(spool_->WaitComplete(), 0);
  EXPECT_EQ(spool_->WaitBatch(0), nullptr);
}

TEST_F(SpoolTest, FeederErrorEndsEveryWait) {
  Open();
  writer_->Fail(Error(ErrorCode::kNotFound, "no such file"));
  EXPECT_EQ(Thrown([&] { spool_->WaitBatch(0); }).message(), "no such file");
  EXPECT_EQ(CodeOf([&] { spool_->WaitComplete(); }), ErrorCode::kNotFound);
}

TEST_F(SpoolTest, FeederDeathEndsTheWaitButItsRowsRemain) {
  Open();
  WriteNumbers(*writer_, 0, 3);
  writer_.reset();
  EXPECT_EQ(spool_->WaitBatch(0)->rows(), 3);
  EXPECT_EQ(CodeOf([&] { spool_->WaitBatch(1); }), ErrorCode::kUnavailable);
  EXPECT_EQ(CodeOf([&] { spool_->WaitComplete(); }), ErrorCode::kUnavailable);
}

TEST_F(SpoolTest, IdleFeederEndsTheWaitAtItsDeadline) {
  Open();
  EXPECT_EQ(CodeOf([&] { spool_->WaitComplete(Deadline::After(0.05)); }),
            ErrorCode::kDeadlineExceeded);
}

TEST_F(SpoolTest, StopEndsTheWaitForAnUnfinishedFeeder) {
  Open(60);
  WriteNumbers(*writer_, 0, 3);
  std::thread waiting(
      [&] { EXPECT_EQ(CodeOf([&] { spool_->WaitComplete(); }), ErrorCode::kAborted); });
  spool_->Stop();
  waiting.join();
}

TEST_F(SpoolTest, DestructionStopsAnUnfinishedFeeder) {
  Open();
  std::thread trainer([&] {
    spool_->WaitBatch(0);
    spool_.reset();
  });
  bool wanted = true;
  for (int32_t i = 0; wanted; ++i) wanted = WriteNumbers(*writer_, i, 10'000);
  trainer.join();
}

TEST_F(SpoolTest, DamagedImageEndsTheWait) {
  ring::RingEnds ends = ring::CreateRing(64 << 10);
  const ring::RingMemory memory(ends.writer.memory);
  writer_.emplace(std::move(ends.writer));
  WriteNumbers(*writer_, 0, 1);
  *memory.At(sizeof(ring::EntryHeader)) = std::byte{0};  // the image's magic
  spool_ = std::make_shared<Spool>(std::move(ends.reader), SpoolOptions{::testing::TempDir(), 10});
  EXPECT_EQ(CodeOf([&] { spool_->WaitBatch(0); }), ErrorCode::kDataLoss);
}

TEST_F(SpoolTest, SliceIsAnyRangeAndMayWrapAround) {
  Open();
  WriteNumbers(*writer_, 0, 3);
  WriteNumbers(*writer_, 3, 2);
  writer_->WriteEnd(Soon());
  SliceSource slice(spool_);
  EXPECT_EQ(slice.rows(), 5);
  EXPECT_THAT(TakeEpoch(slice, 2), IsEmpty());
  slice.SetRange(1, 3);
  EXPECT_THAT(TakeEpoch(slice, 2), ElementsAre(1, 2, 3));
  slice.NextEpoch();
  EXPECT_THAT(TakeEpoch(slice, 100), ElementsAre(1, 2, 3));
  slice.SetRange(14, 7);
  EXPECT_THAT(TakeEpoch(slice, 3), ElementsAre(4, 0, 1, 2, 3, 4, 0));
}

TEST_F(SpoolTest, SliceOfNoRowsIsEmpty) {
  Open();
  writer_->WriteEnd(Soon());
  SliceSource slice(spool_);
  slice.SetRange(3, 2);
  EXPECT_THAT(TakeEpoch(slice, 2), IsEmpty());
}

}  // namespace
}  // namespace hearth::dataset
