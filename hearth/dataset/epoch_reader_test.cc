#include "hearth/dataset/epoch_reader.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <thread>

#include "hearth/dataset/testing/dataset_testing.h"

namespace hearth::dataset {
namespace {

constexpr int64_t kRows = 40'000;

// Two complete partitions with the numbers of kRows rows.
std::shared_ptr<DatasetRows> ManyRows() {
  auto rows = std::make_shared<DatasetRows>(std::vector<int64_t>{0, 1}, 60.0);
  Attempt(0, 0).Write(0, 15'000).Announce(*rows, true);
  Attempt(1, 0).Write(15'000, 25'000).Announce(*rows, true);
  return rows;
}

std::vector<int64_t> TakeAll(EpochReader& reader, int64_t batch_size) {
  std::vector<int64_t> numbers;
  while (true) {
    const auto rows = reader.Select(static_cast<int64_t>(numbers.size()), batch_size, false);
    if (rows->size() == 0) return numbers;
    for (const int64_t number : NumbersOf(*rows)) numbers.push_back(number);
  }
}

std::vector<int64_t> OrderOfEpoch(ShuffleMode shuffle, int64_t epoch, int64_t batch_size) {
  EpochReader reader(ManyRows(), 11, shuffle);
  reader.Start(epoch);
  return TakeAll(reader, batch_size);
}

TEST(EpochReader, ReadsEachRowOnceInEachEpoch) {
  for (const ShuffleMode shuffle : {ShuffleMode::kNone, ShuffleMode::kWindow, ShuffleMode::kFull}) {
    for (const int64_t epoch : {0, 3}) {
      std::vector<int64_t> order = OrderOfEpoch(shuffle, epoch, 1000);
      EXPECT_EQ(order, OrderOfEpoch(shuffle, epoch, 77)) << "the order depends on the batch size";
      std::sort(order.begin(), order.end());
      EXPECT_EQ(order, Range(0, kRows));
    }
  }
}

TEST(EpochReader, OrderDoesNotDependOnArrival) {
  const std::vector<int64_t> expected = OrderOfEpoch(ShuffleMode::kWindow, 0, 100);
  for (const int32_t chunk : {37, 1024, 15'000}) {
    const auto rows = std::make_shared<DatasetRows>(std::vector<int64_t>{0, 1}, 60.0);
    std::thread writers([&] {
      Attempt first(0, 0), second(1, 0);
      for (int32_t at = 0; at < 25'000; at += chunk) {
        second.Write(15'000 + at, std::min(chunk, 25'000 - at)).Announce(*rows);
        if (at >= 15'000) continue;
        first.Write(at, std::min(chunk, 15'000 - at)).Announce(*rows);
      }
      first.Announce(*rows, true);
      second.Announce(*rows, true);
    });
    EpochReader reader(rows, 11, ShuffleMode::kWindow);
    EXPECT_EQ(TakeAll(reader, 100), expected) << "chunks of " << chunk;
    writers.join();
  }
}

TEST(EpochReader, FirstEpochStartsWithItsFirstWindow) {
  const auto rows = std::make_shared<DatasetRows>(std::vector<int64_t>{0}, 60.0);
  Attempt attempt(0, 0);
  attempt.Write(0, 64).Announce(*rows);
  EpochReader reader(rows, 11, ShuffleMode::kWindow);
  std::vector<int64_t> numbers = NumbersOf(*reader.Select(0, 64, false));
  std::sort(numbers.begin(), numbers.end());
  EXPECT_EQ(numbers, Range(0, 64));
}

TEST(EpochReader, WrapsAroundToTheEpochsFirstRows) {
  EpochReader reader(ManyRows(), 11, ShuffleMode::kWindow);
  for (const int64_t epoch : {0, 1}) {
    reader.Start(epoch);
    std::vector<int64_t> expected = NumbersOf(*reader.Select(kRows - 5, 5, false));
    for (const int64_t number : NumbersOf(*reader.Select(0, 7, false))) expected.push_back(number);
    EXPECT_EQ(NumbersOf(*reader.Select(kRows - 5, 12, true)), expected);
    EXPECT_EQ(reader.Select(kRows - 5, 12, false)->size(), 5);
    EXPECT_EQ(reader.Select(kRows + 5, 12, false)->size(), 0);
    EXPECT_EQ(NumbersOf(*reader.Select(3 * kRows, 7, true)),
              NumbersOf(*reader.Select(0, 7, false)));
  }
}

TEST(EpochReader, ReadsTheRemainingRowsOfAnEpoch) {
  for (const ShuffleMode shuffle : {ShuffleMode::kNone, ShuffleMode::kWindow, ShuffleMode::kFull}) {
    for (const int64_t epoch : {0, 2}) {
      const std::vector<bool> gone = RowsBefore(25'000, kRows, EpochOrder(shuffle, 11, epoch));
      std::vector<int64_t> left;
      for (int64_t row = 0; row < kRows; ++row) {
        if (!gone[static_cast<size_t>(row)]) left.push_back(row);
      }
      EpochReader reader(ManyRows(), 11, shuffle);
      reader.Start(epoch);
      for (const int64_t row : NumbersOf(*reader.Select(0, 25'000, false))) {
        ASSERT_TRUE(gone[static_cast<size_t>(row)]);
      }
      reader.Start(epoch, EpochReader::Rest{left});
      EXPECT_EQ(reader.WaitRows(), 15'000);
      std::vector<int64_t> rest = TakeAll(reader, 321);
      std::sort(rest.begin(), rest.end());
      EXPECT_EQ(rest, left);
    }
  }
}

TEST(EpochReader, ReadsRemainingRowsInTheOrderOfAnotherSeed) {
  const std::vector<int64_t> left = Range(0, 10'000);
  EpochReader reader(ManyRows(), 11, ShuffleMode::kFull);
  reader.Start(1, EpochReader::Rest{left});
  const std::vector<int64_t> own = TakeAll(reader, 1000);
  reader.Start(1, EpochReader::Rest{left, 12});
  std::vector<int64_t> other = TakeAll(reader, 1000);
  EXPECT_NE(other, own);
  EXPECT_EQ(reader.seed(), 11) << "the seeds of rows must not depend on their order";
  std::sort(other.begin(), other.end());
  EXPECT_EQ(other, left);
  reader.Start(1);
  EpochReader fresh(ManyRows(), 11, ShuffleMode::kFull);
  fresh.Start(1);
  EXPECT_EQ(NumbersOf(*reader.Select(0, 100, false)), NumbersOf(*fresh.Select(0, 100, false)));
}

TEST(EpochReader, NeedsNoRowsAfterTheRemainingOnes) {
  const auto rows = std::make_shared<DatasetRows>(std::vector<int64_t>{0}, 60.0);
  Attempt attempt(0, 0);
  attempt.Write(0, 100).Announce(*rows);
  EpochReader reader(rows, 11, ShuffleMode::kFull);
  reader.Start(0, EpochReader::Rest{{7, 8, 99}});
  EXPECT_EQ(TakeAll(reader, 2).size(), 3);
}

TEST(EpochReader, RejectsInvalidRemainingRows) {
  EpochReader reader(ManyRows(), 11, ShuffleMode::kNone);
  for (const std::vector<int64_t>& rows :
       {std::vector<int64_t>{3, 3}, std::vector<int64_t>{4, 3}, std::vector<int64_t>{-1, 3}}) {
    EXPECT_EQ(Thrown([&] { reader.Start(0, EpochReader::Rest{rows}); }).code(),
              ErrorCode::kInvalidArgument);
  }
  reader.Start(0, EpochReader::Rest{{3, kRows}});
  EXPECT_EQ(Thrown([&] { reader.Select(0, 2, false); }).code(), ErrorCode::kInvalidArgument);
}

TEST(EpochReader, RankWithoutRowsIsAnError) {
  const auto rows = std::make_shared<DatasetRows>(std::vector<int64_t>{}, 60.0);
  EpochReader reader(rows, 11, ShuffleMode::kWindow);
  EXPECT_EQ(reader.WaitRows(), 0);
  EXPECT_EQ(reader.Select(0, 4, false)->size(), 0);
  EXPECT_EQ(Thrown([&] { reader.Select(0, 4, true); }).code(), ErrorCode::kInvalidArgument);
  EXPECT_EQ(Thrown([&] { reader.Select(-1, 4, true); }).code(), ErrorCode::kInvalidArgument);
}

}  // namespace
}  // namespace hearth::dataset
