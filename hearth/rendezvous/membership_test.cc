#include "hearth/rendezvous/membership.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

namespace hearth::rendezvous {
namespace {

TEST(Membership, IsCompleteWhenTheLastRankHasReserved) {
  Membership membership(2);
  EXPECT_FALSE(membership.Reserve(1, "b", "info 1"));
  EXPECT_FALSE(membership.Reserve(1, "b", "again"));
  EXPECT_FALSE(membership.complete());
  EXPECT_TRUE(membership.Reserve(0, "a", "info 0"));
  EXPECT_EQ(membership.Infos(), (std::vector<Json>{"info 0", "info 1"}));
}

TEST(Membership, NamesMissingRanksAndTheOthersHosts) {
  Membership membership(5);
  EXPECT_EQ(membership.DescribeReservation(),
            "ranks 0, 1, 2, 3, 4 of 5 did not reserve; no rank did");
  membership.Reserve(0, "node1", {});
  membership.Reserve(2, "node1", {});
  membership.Reserve(4, "node2", {});
  EXPECT_EQ(membership.DescribeReservation(),
            "ranks 1, 3 of 5 did not reserve; ranks 0, 2 reserved from host node1, "
            "rank 4 reserved from host node2");
}

TEST(Membership, LongListsAreShortened) {
  Membership membership(40);
  membership.Reserve(0, "node1", {});
  EXPECT_NE(membership.DescribeReservation().find("15, 16 and 23 more of 40"), std::string::npos);
}

TEST(Membership, GatherReturnsAllValuesToTheLastRank) {
  Membership membership(3);
  EXPECT_FALSE(membership.Gather(2, "x", "two"));
  EXPECT_FALSE(membership.Gather(0, "x", "old"));
  EXPECT_FALSE(membership.Gather(0, "x", "zero"));
  EXPECT_EQ(membership.Gather(1, "x", "one"), (std::vector<Json>{"zero", "one", "two"}));
  EXPECT_FALSE(membership.Gather(1, "x", "a new round"));
}

TEST(Membership, GathersOfDifferentNamesAreIndependent) {
  Membership membership(2);
  EXPECT_FALSE(membership.Gather(0, "x", 1));
  EXPECT_FALSE(membership.Gather(1, "y", 2));
  EXPECT_TRUE(membership.Gather(1, "x", 3));
}

TEST(Membership, NamesTheMissingRanksOfAGather) {
  Membership membership(3);
  for (int rank = 0; rank < 3; ++rank) membership.Reserve(rank, fmt::format("h{}", rank), {});
  membership.Gather(1, "x", 0);
  EXPECT_EQ(membership.DescribeMissing("x"), "rank 0 on host h0, rank 2 on host h2");
}

}  // namespace
}  // namespace hearth::rendezvous
