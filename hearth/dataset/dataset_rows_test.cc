#include "hearth/dataset/dataset_rows.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cmath>
#include <cstring>
#include <thread>

#include "hearth/batch/testing/batch_testing.h"
#include "hearth/dataset/testing/dataset_testing.h"

namespace hearth::dataset {
namespace {

using ::testing::HasSubstr;

std::vector<int64_t> Take(DatasetRows& rows, int64_t begin, int64_t end) {
  EXPECT_GE(rows.WaitIndex(end), end);
  return NumbersOf(*rows.Select(Range(begin, end)));
}

std::vector<int64_t> Joined(std::vector<int64_t> first, const std::vector<int64_t>& second) {
  first.insert(first.end(), second.begin(), second.end());
  return first;
}

TEST(DatasetRows, NumbersTheRowsOfItsPartitionsInTheirOrder) {
  DatasetRows rows({7, 2}, 10);
  Attempt(7, 0).Write(700, 30).Announce(rows, true);
  Attempt(2, 0).Write(200, 20).Announce(rows, true);
  EXPECT_EQ(rows.WaitRows(), 50);
  EXPECT_EQ(Take(rows, 0, 50), Joined(Range(200, 220), Range(700, 730)));
  const auto ids = rows.IdsOf(std::vector<int64_t>{19, 20});
  EXPECT_EQ(ids[0].partition, 2);
  EXPECT_EQ(ids[0].row, 19);
  EXPECT_EQ(ids[1].partition, 7);
  EXPECT_EQ(ids[1].row, 0);
}

TEST(DatasetRows, GivesRowsBeforeTheirPartitionIsComplete) {
  DatasetRows rows({0, 1}, 10);
  Attempt first(0, 0), second(1, 0);
  second.Write(100, 10).Announce(rows);
  first.Write(0, 10).Announce(rows);
  EXPECT_EQ(rows.WaitIndex(5), 10) << "rows of partition 1 have no index yet";
  EXPECT_EQ(Take(rows, 0, 10), Range(0, 10));
  first.Announce(rows, true);
  EXPECT_EQ(Take(rows, 10, 20), Range(100, 110));
}

TEST(DatasetRows, TotalsGiveTheRowCountBeforeRowsArrive) {
  DatasetRows rows({1, 2}, 10);
  rows.SetTotals({5, 20, 30});
  EXPECT_EQ(rows.WaitRows(), 50);
  EXPECT_EQ(rows.WaitTotals(10), std::vector<int64_t>({5, 20, 30}));
  Attempt(2, 0).Write(0, 30).Announce(rows, true);
  EXPECT_EQ(Thrown([&] { Attempt(1, 0).Write(0, 21).Announce(rows, true); }).code(),
            ErrorCode::kDataLoss);
}

TEST(DatasetRows, WaitsForTheWriter) {
  DatasetRows rows({0}, 60);
  Attempt attempt(0, 0);
  std::thread writer([&] {
    for (int32_t at = 0; at < 2000; at += 100) attempt.Write(at, 100).Announce(rows);
    attempt.Announce(rows, true);
  });
  EXPECT_EQ(Take(rows, 0, 2000), Range(0, 2000));
  EXPECT_EQ(rows.WaitRows(), 2000);
  EXPECT_EQ(rows.WaitHashes(), std::vector<uint64_t>{attempt.hash()});
  writer.join();
}

TEST(DatasetRows, FailEndsAllWaits) {
  DatasetRows rows({0}, 60);
  std::thread waiting([&] {
    const Error error = Thrown([&] { rows.WaitIndex(1); });
    EXPECT_EQ(error.code(), ErrorCode::kAborted);
    EXPECT_STREQ(error.what(), "rank 1 was killed");
  });
  rows.Fail("rank 1 was killed");
  rows.Fail("another reason");
  waiting.join();
  EXPECT_EQ(Thrown([&] { rows.WaitRows(); }).message(), "rank 1 was killed");
}

TEST(DatasetRows, RejectsInvalidTimeLimits) {
  for (const double seconds : {-1.0, -1e-9, std::nan(""), HUGE_VAL}) {
    EXPECT_EQ(Thrown([&] { DatasetRows({0}, seconds); }).code(), ErrorCode::kInvalidArgument);
    DatasetRows rows({0}, 0);
    EXPECT_EQ(Thrown([&] { rows.WaitTotals(seconds); }).code(), ErrorCode::kInvalidArgument);
  }
}

TEST(DatasetRows, KeepsFewOfItsPagesResident) {
  constexpr int64_t kBytes = 1 << 20, kRows = 160;
  DatasetRows rows({0}, 10);
  Attempt attempt(0, 0);
  for (int64_t row = 0; row < kRows; ++row) {
    batch::BatchBuilder one;
    one.AddBinary("b", {std::string(kBytes, 'x')});
    attempt.Write(one);
  }
  const int64_t before = batch::ResidentFileBytes();
  attempt.Announce(rows, true);
  int64_t most = 0, seen = 0;
  for (int64_t row = 0; row < kRows; ++row) {
    const auto selected = rows.Select(Range(row, row + 1));
    const auto& [batch, at_row] = selected->refs.at(0);
    const std::string_view value = batch->column("b").Bytes(at_row);
    for (size_t at = 0; at < value.size(); at += 512) seen += value[at] == 'x';
    most = std::max(most, batch::ResidentFileBytes() - before);
  }
  EXPECT_EQ(seen, kRows * kBytes / 512);
  EXPECT_LT(most, 80 * kBytes);
}

TEST(DatasetRows, EndsItsWaitsAtTheDeadline) {
  DatasetRows rows({0, 1}, 0.01);
  Attempt(0, 0).Write(0, 3).Announce(rows, true);
  const Error error = Thrown([&] { rows.WaitRows(); });
  EXPECT_EQ(error.code(), ErrorCode::kDeadlineExceeded);
  EXPECT_THAT(error.message(), HasSubstr("1 of this rank's 2 partitions are complete, 3 rows"));
}

TEST(DatasetRows, ContinuesWithAnotherAttemptOfTheSameRows) {
  DatasetRows rows({0}, 10);
  Attempt first(0, 0);
  first.Write(0, 500).Write(500, 100).Announce(rows);
  const auto before = rows.Select(Range(0, 300));
  rows.AbandonAttempt(0, 0);
  EXPECT_EQ(rows.WaitIndex(300), 300) << "rows that were not read may differ in another attempt";
  Attempt second(0, 1);
  second.Write(0, 70).Announce(rows);  // in other batches
  EXPECT_EQ(Take(rows, 250, 300), Range(250, 300)) << "the first attempt's rows stay valid";
  second.Write(70, 300).Announce(rows);
  EXPECT_EQ(Take(rows, 0, 370), Range(0, 370));
  second.Write(370, 230).Announce(rows, true);
  EXPECT_EQ(Take(rows, 0, 600), Range(0, 600));
  EXPECT_EQ(NumbersOf(*before), Range(0, 300));
}

TEST(DatasetRows, TakeWaitsForRowsWhoseAttemptWasLostAfterTheyArrived) {
  DatasetRows rows({0}, 10);
  Attempt(0, 0).Write(0, 100).Announce(rows);
  ASSERT_EQ(rows.WaitIndex(100), 100);
  rows.AbandonAttempt(0, 0);
  std::thread writer([&] { Attempt(0, 1).Write(0, 100).Announce(rows); });
  EXPECT_EQ(NumbersOf(*rows.Select(Range(0, 100))), Range(0, 100));
  writer.join();
}

TEST(DatasetRows, TakeRejectsRowsThatAnotherAttemptDoesNotHave) {
  DatasetRows rows({0}, 10);
  Attempt(0, 0).Write(0, 100).Announce(rows);
  ASSERT_EQ(rows.WaitIndex(100), 100);
  rows.AbandonAttempt(0, 0);
  Attempt(0, 1).Write(0, 50).Announce(rows, true);
  EXPECT_EQ(Thrown([&] { rows.Select(Range(0, 100)); }).code(), ErrorCode::kDataLoss);
}

TEST(DatasetRows, RejectsIndicesThatHaveNotArrived) {
  DatasetRows rows({0, 1}, 10);
  const std::vector<int64_t> first = {0};
  EXPECT_EQ(Thrown([&] { rows.IdsOf(first); }).code(), ErrorCode::kInvalidArgument);
  EXPECT_EQ(Thrown([&] { rows.Select(first); }).code(), ErrorCode::kInvalidArgument);
  Attempt(0, 0).Write(0, 100).Announce(rows, true);
  Attempt(1, 0).Write(0, 10).Announce(rows);
  const std::pair<int64_t, std::string> wrong[] = {
      {-1, "row -1 was requested; rows are counted from 0"},
      {110, "row 110 was requested, but only 110 rows of this rank have arrived"}};
  for (const auto& [index, message] : wrong) {
    const std::vector<int64_t> indices = {5, index};
    const Error error = Thrown([&] { rows.Select(indices); });
    EXPECT_EQ(error.code(), ErrorCode::kInvalidArgument);
    EXPECT_THAT(error.message(), HasSubstr(message));
    EXPECT_EQ(Thrown([&] { rows.IdsOf(indices); }).message(), error.message());
  }
  rows.AbandonAttempt(1, 0);
  const std::vector<int64_t> lost = {109};
  EXPECT_EQ(rows.IdsOf(lost).at(0).row, 9) << "rows of a lost attempt have arrived";
}

TEST(DatasetRows, RejectsAnAttemptWhoseRowsDifferFromThoseRead) {
  DatasetRows rows({0}, 10);
  Attempt(0, 0).Write(0, 500).Announce(rows);
  rows.Select(Range(0, 300));
  rows.AbandonAttempt(0, 0);
  Attempt second(0, 1);
  second.Write(0, 299).Write(1000, 1);
  const Error error = Thrown([&] { second.Announce(rows); });
  EXPECT_EQ(error.code(), ErrorCode::kDataLoss);
  EXPECT_THAT(error.message(), HasSubstr("attempt 1 of partition 0 has other rows than attempt 0"));
  EXPECT_EQ(Thrown([&] { rows.WaitIndex(1); }).message(), error.message());
}

TEST(DatasetRows, RejectsAnAttemptWithFewerRowsThanWereRead) {
  DatasetRows rows({0}, 10);
  Attempt(0, 0).Write(0, 500).Announce(rows);
  rows.Select(Range(0, 300));
  rows.AbandonAttempt(0, 0);
  Attempt second(0, 1);
  second.Write(0, 299).Announce(rows);
  EXPECT_EQ(Thrown([&] { second.Announce(rows, true); }).code(), ErrorCode::kDataLoss);
}

TEST(DatasetRows, AcceptsOtherRowsIfNoneWereRead) {
  DatasetRows rows({0}, 10);
  Attempt(0, 0).Write(0, 500).Announce(rows);
  rows.AbandonAttempt(0, 0);
  Attempt(0, 1).Write(1000, 50).Announce(rows, true);
  EXPECT_EQ(Take(rows, 0, 50), Range(1000, 1050));
}

TEST(DatasetRows, ReadsTheFirstCompleteAttempt) {
  DatasetRows rows({0}, 10);
  Attempt slow(0, 0), fast(0, 1);
  slow.Write(0, 100).Announce(rows);
  rows.Select(Range(0, 100));
  fast.Write(0, 400).Announce(rows, true);
  EXPECT_EQ(Take(rows, 0, 400), Range(0, 400));
  slow.Write(100, 100).Announce(rows);  // a slower attempt: ignored from now on
  rows.AbandonAttempt(0, 0);
  EXPECT_EQ(rows.WaitRows(), 400);
}

TEST(DatasetRows, FallsBackToAConcurrentAttempt) {
  DatasetRows rows({0}, 10);
  Attempt first(0, 0), second(0, 1);
  first.Write(0, 100).Announce(rows);
  second.Write(0, 250).Announce(rows);
  rows.Select(Range(0, 80));
  rows.AbandonAttempt(0, 0);
  EXPECT_EQ(Take(rows, 0, 250), Range(0, 250));
}

TEST(DatasetRows, IgnoresAnAttemptThatWasLost) {
  DatasetRows rows({0}, 0.01);
  Attempt lost(0, 0);
  rows.AbandonAttempt(0, 0);
  lost.Write(0, 10).Announce(rows, true);
  EXPECT_EQ(Thrown([&] { rows.WaitIndex(1); }).code(), ErrorCode::kDeadlineExceeded);
}

TEST(DatasetRows, RejectsPartitionsItDoesNotOwn) {
  DatasetRows rows({1}, 10);
  EXPECT_EQ(Thrown([&] { Attempt(0, 0).Write(0, 1).Announce(rows); }).code(),
            ErrorCode::kInvalidArgument);
  EXPECT_EQ(Thrown([&] { rows.ApplyAnnouncement({.partition = 1, .attempt = 0}); }).code(),
            ErrorCode::kInvalidArgument);
  EXPECT_EQ(Thrown([] { DatasetRows({1, 1}, 10); }).code(), ErrorCode::kInvalidArgument);
  EXPECT_EQ(Thrown([&] { rows.SetTotals({1}); }).code(), ErrorCode::kInvalidArgument);
}

TEST(DatasetRows, RejectsDifferentColumns) {
  DatasetRows rows({0, 1}, 10);
  Attempt(0, 0).Write(0, 1).Announce(rows, true);
  batch::BatchBuilder other;
  other.AddDouble("n", {1.0});
  Attempt attempt(1, 0);
  attempt.Write(other);
  const Error error = Thrown([&] { attempt.Announce(rows); });
  EXPECT_EQ(error.code(), ErrorCode::kDataLoss);
  EXPECT_THAT(error.message(), HasSubstr("columns n float64, but earlier rows have n int32"));
}

TEST(DatasetRows, HasNoColumnsWithoutRows) {
  DatasetRows none({}, 10);
  EXPECT_EQ(none.WaitRows(), 0);
  EXPECT_EQ(none.WaitSchema(), nullptr);
  DatasetRows empty({3}, 10);
  Attempt(3, 0).Announce(empty, true);
  EXPECT_EQ(empty.WaitSchema(), nullptr);
  EXPECT_EQ(empty.Select({})->size(), 0);
}

// Larger than one mapping, so that images are in several mappings.
TEST(DatasetRows, MapsAFileThatGrowsWithoutMovingItsRows) {
  DatasetRows rows({0}, 10);
  Attempt attempt(0, 0);
  std::vector<std::shared_ptr<const SelectedRows>> taken;
  const int32_t many = 300'000;
  for (int32_t round = 0; round < 12; ++round) {
    attempt.Write(round * many, many).Announce(rows);
    taken.push_back(rows.Select({int64_t{round} * many, int64_t{round + 1} * many - 1}));
  }
  for (int32_t round = 0; round < 12; ++round) {
    const std::vector<int64_t> ends = {int64_t{round} * many, int64_t{round + 1} * many - 1};
    EXPECT_EQ(NumbersOf(*taken[static_cast<size_t>(round)]), ends);
  }
  EXPECT_EQ(Take(rows, 0, 12 * many), Range(0, 12 * many));
}

class DamagedPartition : public ::testing::Test {
 protected:
  // Announces a file of two images in which one byte or the end was changed.
  Error Announced(const std::vector<std::byte>& bytes, Committed committed) {
    Fd file = UnnamedFile();
    EXPECT_EQ(::pwrite(file.get(), bytes.data(), bytes.size(), 0),
              static_cast<ssize_t>(bytes.size()));
    DatasetRows rows({0}, 10);
    Error error = Thrown([&] {
      rows.ApplyAnnouncement(
          {.partition = 0, .attempt = 0, .file = std::move(file), .committed = committed});
    });
    EXPECT_EQ(Thrown([&] { rows.WaitIndex(1); }).message(), error.message());
    return error;
  }
  std::vector<std::byte> Contents(const Attempt& attempt) {
    std::vector<std::byte> bytes(attempt.committed().bytes);
    EXPECT_EQ(::pread(attempt.file().get(), bytes.data(), bytes.size(), 0),
              static_cast<ssize_t>(bytes.size()));
    return bytes;
  }
};

TEST_F(DamagedPartition, EachDamagedByteIsAnError) {
  Attempt attempt(0, 0);
  attempt.Write(0, 10).Write(10, 10);
  const std::vector<std::byte> sound = Contents(attempt);
  // Damages the header and table of each image; the other bytes are names, padding and values.
  for (const size_t image : {size_t{0}, sound.size() / 2}) {
    for (size_t at : {0, 4, 8, 15, 16, 23, 24, 28, 32, 36, 40, 56, 57, 80, 88}) {
      std::vector<std::byte> damaged = sound;
      damaged[image + at] ^= std::byte{0x81};
      EXPECT_EQ(Announced(damaged, attempt.committed()).code(), ErrorCode::kDataLoss)
          << "byte " << at << " of the image at " << image;
    }
  }
}

TEST_F(DamagedPartition, AnnouncementThatDoesNotMatchIsAnError) {
  Attempt attempt(0, 0);
  attempt.Write(0, 10).Write(10, 10);
  const std::vector<std::byte> sound = Contents(attempt);
  const uint64_t bytes = sound.size();
  const std::vector<Committed> others = {{bytes, 19},     {bytes, 21},      {bytes + 64, 20},
                                         {bytes - 1, 20}, {bytes - 64, 20}, {bytes / 2 + 16, 10},
                                         {1 << 30, 20},   {0, 20}};
  for (const Committed& committed : others) {
    EXPECT_EQ(Announced(sound, committed).code(), ErrorCode::kDataLoss) << committed.bytes;
  }
}

TEST_F(DamagedPartition, ShrinkingIsAnError) {
  DatasetRows rows({0}, 10);
  Attempt attempt(0, 0);
  attempt.Write(0, 10).Announce(rows);
  const Committed less = {attempt.committed().bytes - 64, 10};
  EXPECT_EQ(Thrown([&] {
              rows.ApplyAnnouncement({.partition = 0, .attempt = 0, .committed = less});
            }).code(),
            ErrorCode::kDataLoss);
}

}  // namespace
}  // namespace hearth::dataset
