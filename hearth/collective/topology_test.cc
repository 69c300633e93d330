#include "hearth/collective/topology.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

namespace hearth::collective {
namespace {

using ::testing::ElementsAre;

// Ranks with the same letter reach each other.
Topology Of(const std::string& hosts) {
  std::vector<std::vector<bool>> reach(hosts.size(), std::vector<bool>(hosts.size()));
  for (size_t a = 0; a < hosts.size(); ++a) {
    for (size_t b = 0; b < hosts.size(); ++b) reach[a][b] = hosts[a] == hosts[b];
  }
  return Topology(reach);
}

TEST(Topology, RanksThatReachEachOtherFormAHost) {
  const Topology topology = Of("aaa");
  EXPECT_TRUE(topology.one_host());
  EXPECT_EQ(topology.Describe("tcp"), "shared memory");
}

TEST(Topology, UnreachableRanksUseTcp) {
  const Topology topology = Of("abc");
  EXPECT_TRUE(topology.one_rank_per_host());
  EXPECT_EQ(topology.Describe("rdma"), "rdma");
}

TEST(Topology, EveryRankOfEqualHostsCommunicatesAcrossHosts) {
  const Topology topology = Of("abab");
  EXPECT_EQ(topology.parts(), 2);
  EXPECT_THAT(topology.Across(0), ElementsAre(0, 1));
  EXPECT_THAT(topology.Across(1), ElementsAre(2, 3));
  EXPECT_EQ(topology.Describe("tcp"), "shared memory within 2 hosts, tcp between them");
}

TEST(Topology, OneRankOfEachUnequalHostCommunicatesAcrossHosts) {
  const Topology topology = Of("aab");
  EXPECT_EQ(topology.parts(), 1);
  EXPECT_THAT(topology.Across(0), ElementsAre(0, 2));
  EXPECT_THAT(topology.host_of(1), ElementsAre(0, 1));
}

TEST(Topology, ReachInOneDirectionOnlyDoesNotMakeAHost) {
  const Topology topology({{true, true}, {false, true}});
  EXPECT_TRUE(topology.one_rank_per_host());
}

TEST(Topology, ReachThatIsNotTransitiveStillGivesWholeHosts) {
  // Rank 1 reaches both others, which do not reach each other.
  const Topology topology({{true, true, false}, {true, true, true}, {false, true, true}});
  EXPECT_THAT(topology.hosts(), ElementsAre(ElementsAre(0, 1), ElementsAre(2)));
}

TEST(Topology, ASingleRankIsAHost) {
  const Topology topology = Of("a");
  EXPECT_EQ(topology.world(), 1);
  EXPECT_TRUE(topology.one_host());
  EXPECT_TRUE(topology.one_rank_per_host());
  EXPECT_EQ(topology.parts(), 1);
  EXPECT_THAT(topology.Across(0), ElementsAre(0));
}

// A rank reaches itself even if it cannot open its own page.
TEST(Topology, ARankReachesItself) {
  const Topology topology({{false, true}, {true, false}});
  EXPECT_THAT(topology.hosts(), ElementsAre(ElementsAre(0, 1)));
}

TEST(Topology, EveryRankIsOnOneHostInOrder) {
  for (const std::string hosts : {"a", "ab", "aba", "abcab", "aabbccd", "abcdabcd", "zzzyyx"}) {
    const Topology topology = Of(hosts);
    ASSERT_EQ(topology.world(), static_cast<int>(hosts.size()));
    size_t smallest = hosts.size(), largest = 0;
    for (const auto& members : topology.hosts()) {
      EXPECT_TRUE(std::is_sorted(members.begin(), members.end())) << hosts;
      smallest = std::min(smallest, members.size());
      largest = std::max(largest, members.size());
    }
    for (int rank = 0; rank < topology.world(); ++rank) {
      const auto [host, index] = topology.Find(rank);
      EXPECT_EQ(topology.host_of(rank)[static_cast<size_t>(index)], rank) << hosts;
      EXPECT_EQ(topology.hosts()[static_cast<size_t>(host)], topology.host_of(rank));
      EXPECT_EQ(hosts[static_cast<size_t>(topology.host_of(rank)[0])],
                hosts[static_cast<size_t>(rank)]);
    }
    EXPECT_EQ(topology.parts(), smallest == largest ? static_cast<int>(smallest) : 1) << hosts;
    for (int part = 0; part < topology.parts(); ++part) {
      EXPECT_EQ(topology.Across(part).size(), topology.hosts().size());
    }
  }
}

}  // namespace
}  // namespace hearth::collective
