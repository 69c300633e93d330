#include "hearth/collective/bucket_reducer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <numeric>
#include <vector>

#include "hearth/base/error.h"
#include "hearth/base/testing/deadline_testing.h"
#include "hearth/collective/group.h"
#include "hearth/collective/testing/ranks_testing.h"

namespace hearth::collective {
namespace {

// first, end and elements of each bucket
std::vector<std::vector<size_t>> Shapes(const std::vector<Bucket>& buckets) {
  std::vector<std::vector<size_t>> shapes;
  for (const Bucket& b : buckets) {
    shapes.push_back({b.first_piece, b.end_piece, b.elements.begin, b.elements.end});
  }
  return shapes;
}

TEST(MakeBuckets, FillsFromTheBack) {
  EXPECT_EQ(Shapes(MakeBuckets({10, 20, 30, 40}, 70 * sizeof(float))),
            (std::vector<std::vector<size_t>>{{2, 4, 30, 100}, {0, 2, 0, 30}}));
}

TEST(MakeBuckets, APieceLargerThanABucketGetsItsOwnBucket) {
  EXPECT_EQ(Shapes(MakeBuckets({5, 1000, 5}, 40)),
            (std::vector<std::vector<size_t>>{{2, 3, 1005, 1010}, {1, 2, 5, 1005}, {0, 1, 0, 5}}));
}

TEST(MakeBuckets, WithoutPiecesThereAreNoBuckets) { EXPECT_TRUE(MakeBuckets({}, 100).empty()); }

class Reducer : public WiringTest {};

// Piece p of rank r holds r * 100 + p + round.
TEST_P(Reducer, SumsPiecesReadyInAnyOrder) {
  const std::vector<size_t> counts = {3, 0, 70000, 11, 500, 1};
  const size_t total = std::accumulate(counts.begin(), counts.end(), size_t{0});
  RunGroups(GetParam(), 3, [&](Group& group) {
    auto* buffer = static_cast<float*>(group.Allocate(total * sizeof(float)));
    BucketReducer reducer(group, buffer, counts, {.bucket_bytes = 2048});
    for (int round = 0; round < 4; ++round) {
      float* piece = buffer;
      for (size_t p = 0; p < counts.size(); piece += counts[p++]) {
        std::fill(piece, piece + counts[p],
                  static_cast<float>(group.rank() * 100 + static_cast<int>(p) + round));
      }
      // Each rank reports its pieces in a different order. The last piece is left to Wait.
      for (size_t i = 1; i < counts.size(); ++i) {
        reducer.Ready((i * 5 + static_cast<size_t>(group.rank())) % counts.size());
      }
      reducer.Wait(Soon());
      size_t wrong = 0;
      piece = buffer;
      for (size_t p = 0; p < counts.size(); piece += counts[p++]) {
        const auto expected = static_cast<float>(300 + 3 * (static_cast<int>(p) + round));
        for (size_t i = 0; i < counts[p]; ++i) wrong += piece[i] != expected ? 1 : 0;
      }
      EXPECT_EQ(wrong, 0u) << "round " << round;
      group.Barrier(Soon());  // the group is free between rounds
    }
  });
}

TEST_P(Reducer, ABucketIsReducedBeforeTheOthersAreReady) {
  RunGroups(GetParam(), 2, [&](Group& group) {
    auto* buffer = static_cast<float*>(group.Allocate(2 * sizeof(float)));
    BucketReducer reducer(group, buffer, {1, 1}, {.bucket_bytes = 4});
    buffer[1] = 1;
    reducer.Ready(1);
    const auto* result = reinterpret_cast<volatile float*>(buffer + 1);
    const Deadline deadline = Soon();
    while (*result != 2 && !deadline.expired()) {
    }
    EXPECT_EQ(*result, 2);
    reducer.Wait(Soon());
  });
}

TEST_P(Reducer, WaitRethrowsTheAllReduceErrorEveryTime) {
  RunGroups(GetParam(), 2, [&](Group& group) {
    auto* buffer = static_cast<float*>(group.Allocate(8));
    if (group.rank() == 1) return;
    BucketReducer reducer(group, buffer, {1, 1});
    for (int i = 0; i < 2; ++i) {
      try {
        reducer.Wait(Soon());
        ADD_FAILURE() << "nothing was thrown";
      } catch (const Error& error) {
        EXPECT_EQ(error.code(), ErrorCode::kUnavailable);
        EXPECT_THAT(error.message(), ::testing::HasSubstr("rank 1 on host "));
      }
    }
  });
}

TEST(BucketReducer, RejectsUnknownPiecesAndDuplicateReadiness) {
  RunGroups(Wiring::kThreads, 1, [](Group& group) {
    auto* buffer = static_cast<float*>(group.Allocate(8));
    BucketReducer reducer(group, buffer, {1, 1});
    reducer.Ready(0);
    EXPECT_THROW(reducer.Ready(0), Error);
    EXPECT_THROW(reducer.Ready(2), Error);
    reducer.Wait(Soon());
    reducer.Ready(0);
  });
}

INSTANTIATE_TEST_SUITE_P(Wirings, Reducer,
                         ::testing::Values(Wiring::kThreads, Wiring::kShared, Wiring::kTcp,
                                           Wiring::kUcx, Wiring::kUcxPairs, Wiring::kPairs),
                         [](const auto& info) { return NameOf(info.param); });

}  // namespace
}  // namespace hearth::collective
