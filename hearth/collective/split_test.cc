// Tests groups that split off from another one.
#include <gmock/gmock.h>

#include <string>
#include <tuple>
#include <vector>

#include "hearth/base/socket.h"
#include "hearth/base/testing/deadline_testing.h"
#include "hearth/base/testing/error_testing.h"
#include "hearth/collective/testing/ranks_testing.h"

namespace hearth::collective {
namespace {

class SplitTest : public ::testing::TestWithParam<std::tuple<Wiring, int>> {};

// Splits the group into even and odd ranks; the last rank gets no group.
TEST_P(SplitTest, GroupsWorkIndependently) {
  const auto& [wiring, ranks] = GetParam();
  RunGroups(wiring, ranks, [](Group& group) {
    const bool last = group.rank() == group.world() - 1;
    const auto half = group.Split(last ? -1 : group.rank() % 2, Soon());
    ASSERT_EQ(half == nullptr, last);
    if (half != nullptr) {
      EXPECT_EQ(half->rank(), group.rank() / 2);
      std::vector<int64_t> members(static_cast<size_t>(half->world()));
      members[static_cast<size_t>(half->rank())] = group.rank();
      half->AllGather(members.data(), members.size(), DataType::kInt64, Soon());
      for (size_t i = 0; i < members.size(); ++i) {
        EXPECT_EQ(members[i], static_cast<int64_t>(2 * i) + group.rank() % 2);
      }
      const auto pair = half->Split(0, Soon());
      EXPECT_EQ(pair->world(), half->world());
      pair->Barrier(Soon());
    }
    group.Barrier(Soon());
  });
}

INSTANTIATE_TEST_SUITE_P(Wirings, SplitTest,
                         ::testing::Combine(::testing::Values(Wiring::kThreads, Wiring::kShared,
                                                              Wiring::kTcp, Wiring::kTls,
                                                              Wiring::kPairs),
                                            ::testing::Values(1, 2, 5, 8)),
                         [](const auto& info) {
                           return NameOf(std::get<0>(info.param)) +
                                  std::to_string(std::get<1>(info.param));
                         });

// The range has fewer ports than the number of ranks that bind one in turn.
TEST(SplitPorts, AreThoseOfTheParent) {
  for (const bool hosts : {false, true}) {
    const int first = TcpListener("127.0.0.1").port();
    RunRanks(4, [&](rendezvous::Member& member) {
      GroupOptions options = {.listen_port = first, .listen_ports = 12, .timeout_s = 60};
      options.shared_memory = hosts;
      options.host_id = std::to_string(member.rank() / 2);
      const auto group = std::move(Group::Connect(member, options).front());
      for (int round = 0; round < 3; ++round) {
        group->Split(0, Soon())->Barrier(Soon());
      }
    });
  }
}

TEST(SplitGroups, ARankThatLeftTheParentIsReported) {
  RunGroups(Wiring::kTcp, 3, [](Group& group) {
    if (group.rank() == 1) return;
    const Error error = Thrown([&] { group.Split(0, Soon()); });
    EXPECT_EQ(error.code(), ErrorCode::kUnavailable);
    EXPECT_THAT(error.message(), ::testing::HasSubstr("rank "));
  });
}

// A rank that waits in the new group must be notified of a failure in its parent.
TEST(SplitGroups, AreAbortedWithTheirParent) {
  RunGroups(Wiring::kThreads, 2, [](Group& group) {
    const auto half = group.Split(0, Soon());
    group.Abort("rank 7 failed");
    const Error error = Thrown([&] { half->Barrier(Soon()); });
    EXPECT_EQ(error.code(), ErrorCode::kAborted);
    EXPECT_THAT(error.message(), ::testing::HasSubstr("rank 7 failed"));
  });
}

}  // namespace
}  // namespace hearth::collective
