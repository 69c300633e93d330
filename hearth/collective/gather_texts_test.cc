#include "hearth/collective/gather_texts.h"

#include <gmock/gmock.h>

#include "hearth/base/testing/deadline_testing.h"
#include "hearth/base/testing/error_testing.h"
#include "hearth/collective/testing/ranks_testing.h"

namespace hearth::collective {
namespace {

using GatherTextsTest = WiringTest;

TEST_P(GatherTextsTest, AllRanksGetTheTextsInRankOrder) {
  RunGroups(GetParam(), 3, [](Group& group) {
    // One text is empty, another contains zero bytes.
    const std::string own[] = {"", std::string("a\0b", 3), std::string(100'000, 'x')};
    EXPECT_THAT(GatherTexts(group, own[group.rank()], Soon()), ::testing::ElementsAreArray(own));
  });
}

TEST_P(GatherTextsTest, ARankThatLeftIsReported) {
  RunGroups(GetParam(), 2, [](Group& group) {
    if (group.rank() == 1) return;
    const Error error = Thrown([&] { GatherTexts(group, "text", Soon()); });
    EXPECT_EQ(error.code(), ErrorCode::kUnavailable);
    EXPECT_THAT(error.message(), ::testing::HasSubstr("rank 1"));
  });
}

INSTANTIATE_TEST_SUITE_P(Wirings, GatherTextsTest,
                         ::testing::Values(Wiring::kThreads, Wiring::kTcp),
                         [](const auto& info) { return NameOf(info.param); });

}  // namespace
}  // namespace hearth::collective
