#include "hearth/dataset/order/epoch_order.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <limits>
#include <set>

#include "hearth/dataset/testing/dataset_testing.h"

namespace hearth::dataset {
namespace {

constexpr int64_t kAll = std::numeric_limits<int64_t>::max();

std::vector<int64_t> OrderOf(ShuffleMode shuffle, uint64_t seed, int64_t epoch, int64_t rows) {
  EpochOrder order(shuffle, seed, epoch);
  std::vector<int64_t> numbers;
  for (int64_t at = 0; at < rows; ++at) numbers.push_back(order.At(at, rows));
  return numbers;
}

TEST(EpochOrder, VisitsEachRowOnce) {
  for (const ShuffleMode shuffle : {ShuffleMode::kNone, ShuffleMode::kWindow, ShuffleMode::kFull}) {
    for (const int64_t rows : {0, 1, 2, 63, 64, 65, 192, 16320, 32704, 32705, 100000}) {
      for (const int64_t epoch : {0, 1, 7}) {
        std::vector<int64_t> order = OrderOf(shuffle, 3, epoch, rows);
        std::sort(order.begin(), order.end());
        ASSERT_EQ(order, Range(0, rows)) << rows << " rows, epoch " << epoch;
      }
    }
  }
}

TEST(EpochOrder, DiffersForEachSeedAndEpoch) {
  for (const ShuffleMode shuffle : {ShuffleMode::kWindow, ShuffleMode::kFull}) {
    std::set<std::vector<int64_t>> orders;
    for (const uint64_t seed : {0, 1, 2}) {
      for (const int64_t epoch : {0, 1, 2}) orders.insert(OrderOf(shuffle, seed, epoch, 500));
    }
    EXPECT_EQ(orders.size(), 9);
    EXPECT_EQ(orders.count(Range(0, 500)), 0);
  }
}

TEST(EpochOrder, FirstEpochNeedsOnlyItsWindow) {
  const std::vector<int64_t> whole = OrderOf(ShuffleMode::kWindow, 9, 0, 60000);
  EpochOrder order(ShuffleMode::kWindow, 9, 0);
  for (int64_t at = 0; at < 60000; at += 97) {
    const int64_t needed = order.RowsNeeded(at);
    if (needed > 60000) break;
    ASSERT_EQ(order.At(at, needed), whole[static_cast<size_t>(at)]) << "position " << at;
  }
}

TEST(EpochOrder, StartsWithSmallGrowingWindows) {
  EpochOrder order(ShuffleMode::kWindow, 9, 0);
  const std::vector<int64_t> ends = {64, 192, 448, 960, 1984, 4032, 8128, 16320, 32704, 49088};
  int64_t begin = 0;
  for (const int64_t end : ends) {
    EXPECT_EQ(order.RowsNeeded(begin), end);
    EXPECT_EQ(order.RowsNeeded(end - 1), end);
    begin = end;
  }
}

TEST(EpochOrder, FullShuffleNeedsAllRows) {
  EXPECT_EQ(EpochOrder(ShuffleMode::kFull, 9, 0).RowsNeeded(0), kAll);
  EXPECT_EQ(EpochOrder(ShuffleMode::kWindow, 9, 1).RowsNeeded(0), kAll);
  EXPECT_EQ(EpochOrder(ShuffleMode::kNone, 9, 1).RowsNeeded(5), 6);
}

// In a uniformly random order, a row is on average a third of all rows away from its original
// position.
TEST(EpochOrder, FullShuffleMixesAllRows) {
  constexpr int64_t kRows = 100000;
  const std::vector<int64_t> order = OrderOf(ShuffleMode::kFull, 4, 0, kRows);
  double distance = 0;
  for (int64_t at = 0; at < kRows; ++at) {
    distance += static_cast<double>(std::abs(order[static_cast<size_t>(at)] - at));
  }
  EXPECT_NEAR(distance / kRows / kRows, 1.0 / 3, 0.01);
}

TEST(EpochOrder, CountsTheRowsOfItsFirstPositions) {
  const std::vector<int64_t> order = OrderOf(ShuffleMode::kWindow, 5, 2, 3000);
  const std::vector<bool> before = RowsBefore(1000, 3000, EpochOrder(ShuffleMode::kWindow, 5, 2));
  EXPECT_EQ(std::count(before.begin(), before.end(), true), 1000);
  for (size_t at = 0; at < 1000; ++at) ASSERT_TRUE(before[static_cast<size_t>(order[at])]);
  const std::vector<bool> all = RowsBefore(9999, 3000, EpochOrder(ShuffleMode::kWindow, 5, 2));
  EXPECT_EQ(std::count(all.begin(), all.end(), true), 3000);
}

TEST(EpochOrder, RejectsUnknownNamesAndEpochs) {
  EXPECT_EQ(ShuffleOf("none"), ShuffleMode::kNone);
  EXPECT_EQ(Thrown([] { ShuffleOf("blocks"); }).code(), ErrorCode::kInvalidArgument);
  EXPECT_EQ(Thrown([] { EpochOrder(ShuffleMode::kFull, 1, -1); }).code(),
            ErrorCode::kInvalidArgument);
}

TEST(RowSeed, DependsOnAllArguments) {
  std::set<uint64_t> seeds;
  for (const uint64_t seed : {0, 1}) {
    for (const int64_t epoch : {0, 1}) {
      for (const int64_t partition : {0, 1}) {
        for (const int64_t row : {0, 1}) seeds.insert(RowSeed(seed, epoch, partition, row));
      }
    }
  }
  EXPECT_EQ(seeds.size(), 16);
}

// A resumed run asks for a position in the middle, when only some rows have arrived.
TEST(EpochOrder, PositionsCanBeAskedInAnyOrder) {
  constexpr int64_t kRows = 500;
  for (const ShuffleMode shuffle : {ShuffleMode::kNone, ShuffleMode::kWindow, ShuffleMode::kFull}) {
    for (const int64_t epoch : {0, 1}) {
      const std::vector<int64_t> whole = OrderOf(shuffle, 5, epoch, kRows);
      EpochOrder order(shuffle, 5, epoch);
      for (const int64_t at : {499, 0, 63, 64, 65, 192, 191, 448, 63, 1}) {
        EXPECT_EQ(order.At(at, kRows), whole[static_cast<size_t>(at)])
            << at << " in epoch " << epoch;
      }
    }
  }
}

TEST(EpochOrder, NeedsTheRowsOfItsWindowAtEachEdge) {
  const EpochOrder first(ShuffleMode::kWindow, 1, 0), later(ShuffleMode::kWindow, 1, 1);
  const EpochOrder none(ShuffleMode::kNone, 1, 0);
  for (const auto& [position, rows] : {std::pair<int64_t, int64_t>{0, 64},
                                       {63, 64},
                                       {64, 192},
                                       {65, 192},
                                       {191, 192},
                                       {192, 448},
                                       {32703, 32704},
                                       {32704, 49088},
                                       {49087, 49088},
                                       {49088, 65472}}) {
    EXPECT_EQ(first.RowsNeeded(position), rows) << position;
    EXPECT_EQ(none.RowsNeeded(position), position + 1);
    EXPECT_EQ(later.RowsNeeded(position), kAll);
  }
}

// The last window of the first epoch is shorter if the rows end within it.
TEST(EpochOrder, TheLastWindowHasTheRemainingRows) {
  for (const int64_t rows : {1, 63, 65, 191, 193, 447, 449}) {
    EpochOrder order(ShuffleMode::kWindow, 2, 0);
    const int64_t begin = rows <= 64 ? 0 : rows <= 192 ? 64 : rows <= 448 ? 192 : 448;
    for (int64_t at = begin; at < rows; ++at) {
      ASSERT_GE(order.At(at, rows), begin) << rows;
      ASSERT_LT(order.At(at, rows), rows) << rows;
    }
  }
}

TEST(RowsBeforeTest, MarksNoneOrAllAtTheEdges) {
  for (const ShuffleMode shuffle : {ShuffleMode::kNone, ShuffleMode::kWindow, ShuffleMode::kFull}) {
    for (const int64_t rows : {0, 1, 64, 65}) {
      const auto marked = [&](int64_t count) {
        const std::vector<bool> before = RowsBefore(count, rows, EpochOrder(shuffle, 1, 0));
        EXPECT_EQ(before.size(), static_cast<size_t>(rows));
        return std::count(before.begin(), before.end(), true);
      };
      EXPECT_EQ(marked(0), 0);
      EXPECT_EQ(marked(rows), rows);
      EXPECT_EQ(marked(rows + 100), rows) << "more than the epoch has";
      EXPECT_EQ(marked(rows / 2), rows / 2);
    }
  }
}

}  // namespace
}  // namespace hearth::dataset
