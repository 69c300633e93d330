#include "hearth/collective/hierarchical_backend.h"

#include <gmock/gmock.h>

#include <vector>

#include "hearth/base/testing/deadline_testing.h"
#include "hearth/base/testing/error_testing.h"
#include "hearth/collective/testing/ranks_testing.h"

namespace hearth::collective {
namespace {

using HierarchicalBackendTest = WiringTest;

// Each rank of a host sends one part of the sum, so each host must reassemble all parts.
TEST_P(HierarchicalBackendTest, EveryElementIsSummedOverAllHosts) {
  RunGroups(GetParam(), 5, [](Group& group) {
    for (const size_t count : {size_t{1}, size_t{2}, size_t{5}, size_t{300'001}}) {
      std::vector<float> data(count);
      for (size_t i = 0; i < count; ++i) {
        data[i] = static_cast<float>(i % 89 + static_cast<size_t>(group.rank()));
      }
      group.AllReduce(data.data(), count, DataType::kFloat32, Op::kSum, Soon());
      for (size_t i = 0; i < count; ++i) ASSERT_EQ(data[i], static_cast<float>(i % 89 * 5 + 10));
    }
  });
}

TEST_P(HierarchicalBackendTest, ARankOtherThanTheFirstOfItsHostCanBroadcast) {
  RunGroups(GetParam(), 5, [](Group& group) {
    for (int root = 0; root < 5; ++root) {
      std::vector<int32_t> data(1000, group.rank());
      group.Broadcast(data.data(), data.size() * sizeof(int32_t), root, Soon());
      EXPECT_THAT(data, ::testing::Each(root));
    }
  });
}

TEST_P(HierarchicalBackendTest, ARankThatLeftAnotherHostIsNoticed) {
  RunGroups(GetParam(), 5, [](Group& group) {
    if (group.rank() == 4) return;
    EXPECT_EQ(CodeOf([&] { group.Barrier(Soon()); }), ErrorCode::kUnavailable);
  });
}

INSTANTIATE_TEST_SUITE_P(Wirings, HierarchicalBackendTest,
                         ::testing::Values(Wiring::kPairs, Wiring::kInterleaved),
                         [](const auto& info) { return NameOf(info.param); });

}  // namespace
}  // namespace hearth::collective
