#include "hearth/collective/shared_memory/shared_backend.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <numeric>
#include <vector>

#include "hearth/base/testing/deadline_testing.h"
#include "hearth/base/testing/error_testing.h"
#include "hearth/collective/testing/ranks_testing.h"

namespace hearth::collective {
namespace {

// In shared memory, a rank may already be in the next sum while other ranks still read its previous
// data.
TEST(SharedBackendTest, SmallSumsInSequenceDoNotMix) {
  RunGroups(Wiring::kThreads, 3, [](Group& group) {
    std::vector<int64_t> data(1000);
    for (int64_t turn = 0; turn < 2000; ++turn) {
      std::fill(data.begin(), data.end(), turn * (group.rank() + 1));
      group.AllReduce(data.data(), data.size(), DataType::kInt64, Op::kSum, Soon());
      ASSERT_EQ(std::count(data.begin(), data.end(), turn * 6), 1000) << turn;
    }
  });
}

// More than fits in the staging area: several windows, of which the last one is smaller.
TEST(SharedBackendTest, SumsPrivateMemoryLargerThanItsStage) {
  RunGroups(Wiring::kThreads, 3, [](Group& group) {
    std::vector<int64_t> data(200'003);
    std::iota(data.begin(), data.end(), group.rank());
    group.AllReduce(data.data(), data.size(), DataType::kInt64, Op::kSum, Soon());
    for (size_t i = 0; i < data.size(); ++i) ASSERT_EQ(data[i], static_cast<int64_t>(3 * i + 3));
  });
}

TEST(SharedBackendTest, NamesTheRankThatLeft) {
  RunGroups(Wiring::kThreads, 3, [](Group& group) {
    if (group.rank() == 2) return;
    const Error error = Thrown([&] { group.Barrier(Soon()); });
    EXPECT_EQ(error.code(), ErrorCode::kUnavailable);
    EXPECT_THAT(error.message(), ::testing::HasSubstr("rank 2"));
  });
}

}  // namespace
}  // namespace hearth::collective
