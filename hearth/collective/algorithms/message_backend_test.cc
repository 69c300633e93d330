#include "hearth/collective/algorithms/message_backend.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "hearth/base/testing/deadline_testing.h"
#include "hearth/base/testing/error_testing.h"
#include "hearth/collective/testing/ranks_testing.h"

namespace hearth::collective {
namespace {

// In some steps a rank has nothing to send and nothing to receive.
TEST(MessageBackendTest, ReducesFewerElementsThanRanksRepeatedly) {
  RunGroups(Wiring::kTcp, 12, [](Group& group) {
    for (int i = 0; i < 300; ++i) {
      float value = 1;
      group.AllReduce(&value, 1, DataType::kFloat32, Op::kSum, Deadline::After(10));
      ASSERT_EQ(value, 12);
    }
  });
}

class MessageBackendSizes : public ::testing::TestWithParam<int> {};

// The sizes select three algorithms: each sum uses a different one than the sum before.
TEST_P(MessageBackendSizes, ChangesTheAlgorithmBetweenSums) {
  RunGroups(Wiring::kTcp, GetParam(), [](Group& group) {
    const auto largest = static_cast<float>(group.world() - 1);
    for (const size_t count :
         {size_t{1}, size_t{100'000}, size_t{1}, size_t{2'000'000}, size_t{100'000}}) {
      std::vector<float> data(count, static_cast<float>(group.rank()));
      group.AllReduce(data.data(), count, DataType::kFloat32, Op::kMax, Soon());
      EXPECT_EQ(std::count(data.begin(), data.end(), largest), static_cast<ptrdiff_t>(count));
    }
  });
}
INSTANTIATE_TEST_SUITE_P(Worlds, MessageBackendSizes, ::testing::Values(3, 4));

// The sum of 1, 1e8, -1e8 and 1 depends on the order: direct exchange adds the last 1 to 0 and
// would return 1, but recursive doubling adds it to -1e8 and returns 0.
TEST(MessageBackendTest, FourRanksOfOneHostSumByRecursiveDoubling) {
  RunGroups(Wiring::kTcp, 4, [](Group& group) {
    float value = std::vector<float>{1, 1e8, -1e8, 1}[static_cast<size_t>(group.rank())];
    group.AllReduce(&value, 1, DataType::kFloat32, Op::kSum, Soon());
    EXPECT_EQ(value, 0);
  });
}

TEST(MessageBackendTest, NamesTheRankThatLeft) {
  RunGroups(Wiring::kTcp, 3, [](Group& group) {
    if (group.rank() == 2) return;
    const Error error = Thrown([&] { group.Barrier(Soon()); });
    EXPECT_EQ(error.code(), ErrorCode::kUnavailable);
  });
}

}  // namespace
}  // namespace hearth::collective
