#include "hearth/rendezvous/membership.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <stdexcept>

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
            "ranks 0, 1, 2, 3, 4 of 5 did not join the cluster; no rank did");
  membership.Reserve(0, "node1", {});
  membership.Reserve(2, "node1", {});
  membership.Reserve(4, "node2", {});
  EXPECT_EQ(membership.DescribeReservation(),
            "ranks 1, 3 of 5 did not join the cluster; ranks 0, 2 joined from host node1, "
            "rank 4 joined from host node2");
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

TEST(Membership, TheFirstReservationOfARankCounts) {
  Membership membership(2);
  EXPECT_FALSE(membership.Reserve(0, "first", "a"));
  EXPECT_FALSE(membership.Reserve(0, "second", "b"));
  EXPECT_EQ(membership.host(0), "first");
  EXPECT_TRUE(membership.Reserve(1, "other", "c"));
  EXPECT_FALSE(membership.Reserve(1, "late", "d")) << "it was complete before";
  EXPECT_EQ(membership.Infos(), (std::vector<Json>{"a", "c"}));
}

TEST(Membership, RanksAreDoneOneByOne) {
  Membership membership(3);
  membership.SetDone(1);
  membership.SetDone(1);
  EXPECT_FALSE(membership.done(0));
  EXPECT_TRUE(membership.done(1));
  EXPECT_FALSE(membership.done(2));
}

TEST(Membership, RanksThatDoNotExistAreRefused) {
  Membership membership(2);
  for (const int rank : {-1, 2, 1000}) {
    EXPECT_THROW(membership.Reserve(rank, "h", {}), std::out_of_range);
    EXPECT_THROW(membership.SetDone(rank), std::out_of_range);
  }
  EXPECT_EQ(membership.DescribeReservation(),
            "ranks 0, 1 of 2 did not join the cluster; no rank did");
}

TEST(Membership, AWorldOfOneIsCompleteAtOnce) {
  Membership membership(1);
  EXPECT_EQ(membership.DescribeReservation(), "rank 0 of 1 did not join the cluster; no rank did");
  EXPECT_TRUE(membership.Reserve(0, "h", 7));
  EXPECT_EQ(membership.Gather(0, "x", "own"), (std::vector<Json>{"own"}));
}

TEST(Membership, AllRanksOfAnUnknownGatherAreMissing) {
  Membership membership(20);
  for (int rank = 0; rank < 20; ++rank) membership.Reserve(rank, "h", {});
  const std::string missing = membership.DescribeMissing("never called");
  EXPECT_TRUE(missing.starts_with("rank 0 on host h, rank 1 on host h, ")) << missing;
  EXPECT_TRUE(missing.ends_with("rank 15 on host h and 4 more")) << missing;
}

}  // namespace
}  // namespace hearth::rendezvous
