#include "hearth/collective/rank_table.h"

#include <gtest/gtest.h>

#include "hearth/base/error.h"
#include "hearth/collective/shared_memory/shared_page.h"

namespace hearth::collective {
namespace {

// Returns a Gather that adds the values of other processes to the value of this process.
Gather GatherOf(const std::vector<nlohmann::json>& before,
                const std::vector<nlohmann::json>& after) {
  return [=](const std::string&, const nlohmann::json& value) {
    std::vector<nlohmann::json> all = before;
    all.push_back(value);
    all.insert(all.end(), after.begin(), after.end());
    return all;
  };
}

RankInfo InfoOn(const std::string& host, const PageAddress& page = {}) {
  RankInfo info;
  info.peer.host = host;
  info.page = page;
  info.address = "127.0.0.1";
  return info;
}

nlohmann::json Process(const std::string& host, int ranks) {
  nlohmann::json infos = nlohmann::json::array();
  for (int i = 0; i < ranks; ++i) infos.push_back(InfoOn(host).ToJson());
  return infos;
}

ErrorCode CodeOf(const std::function<void()>& call) {
  try {
    call();
  } catch (const Error& error) {
    return error.code();
  }
  ADD_FAILURE() << "nothing was thrown";
  return ErrorCode::kInternal;
}

TEST(RankTable, NumbersRanksInProcessOrder) {
  const RankTable table =
      ExchangeInfos(GatherOf({Process("a", 2)}, {Process("c", 1)}), 1, {InfoOn("b"), InfoOn("b")});
  ASSERT_EQ(table.ranks.size(), 5U);
  EXPECT_EQ(table.first_local, 2);
  for (int rank = 0; rank < 5; ++rank) EXPECT_EQ(table.ranks[rank].peer.rank, rank);
  EXPECT_EQ(table.ranks[1].peer.host, "a");
  EXPECT_EQ(table.ranks[3].peer.host, "b");
  EXPECT_EQ(table.ranks[4].peer.host, "c");
}

TEST(RankTable, ReachIsWhatEachRankCanOpen) {
  const OwnPage page = CreateSharedPage();
  PageAddress wrong = page.address;
  wrong.nonce[0] = static_cast<char>(wrong.nonce[0] ^ 1);
  RankTable table;
  table.ranks = {InfoOn("a", page.address), InfoOn("a", wrong)};
  const nlohmann::json theirs = {{false, true}};
  const auto reach = ExchangeReach(GatherOf({}, {theirs}), table, 1);
  EXPECT_EQ(reach, (std::vector<std::vector<bool>>{{true, false}, {false, true}}));
}

TEST(RankTable, RanksWithAnotherHostIdAreUnreachable) {
  const OwnPage page = CreateSharedPage();
  RankTable table;
  table.ranks = {InfoOn("a", page.address), InfoOn("a", page.address)};
  table.ranks[1].host_id = "another";
  const auto reach = ExchangeReach(GatherOf({}, {{{true, true}}}), table, 1);
  EXPECT_EQ(reach[0], (std::vector<bool>{true, false}));
}

TEST(RankTable, InvalidProcessDataIsRejected) {
  RankTable table;
  table.ranks = {InfoOn("a"), InfoOn("b")};
  EXPECT_EQ(CodeOf([&] { ExchangeReach(GatherOf({}, {}), table, 1); }), ErrorCode::kDataLoss)
      << "a rank is missing";
  EXPECT_EQ(CodeOf([&] { ExchangeReach(GatherOf({}, {{{true}}}), table, 1); }),
            ErrorCode::kDataLoss)
      << "it knows too few ranks";
  EXPECT_EQ(CodeOf([&] {
              ExchangeReach(GatherOf({}, {{{"yes", 1}}}), table, 1);
            }),
            ErrorCode::kDataLoss);
  EXPECT_EQ(CodeOf([&] {
              ExchangeInfos(GatherOf({}, {{{{"host", 1}}}}), 0, {InfoOn("a")});
            }),
            ErrorCode::kDataLoss);
}

TEST(RankTable, RanksThatDoNotShareMemoryAreUnreachable) {
  const OwnPage page = CreateSharedPage();
  for (const int rank : {0, 1}) {
    RankTable table;
    table.ranks = {InfoOn("a", page.address), InfoOn("a", page.address)};
    table.ranks[static_cast<size_t>(rank)].shares_memory = false;
    const auto reach = ExchangeReach(GatherOf({}, {{{true, true}}}), table, 1);
    EXPECT_FALSE(reach[0][1]) << "rank " << rank << " shares no memory";
  }
}

TEST(RankTable, EachLocalRankHasItsRow) {
  const OwnPage page = CreateSharedPage();
  RankTable table;
  table.ranks = {InfoOn("a", page.address), InfoOn("a", page.address), InfoOn("b")};
  const auto reach = ExchangeReach(GatherOf({}, {{{false, false, true}}}), table, 2);
  ASSERT_EQ(reach.size(), 3u);
  EXPECT_EQ(reach[0], reach[1]);
  EXPECT_EQ(reach[0], (std::vector<bool>{true, true, false}));
  EXPECT_EQ(reach[2], (std::vector<bool>{false, false, true}));
}

TEST(RankTable, TheErrorOfTheGatherPassesThrough) {
  const Gather late = [](const std::string& name, const nlohmann::json&) {
    Throw(ErrorCode::kDeadlineExceeded, "{} is late", name);
    return std::vector<nlohmann::json>();
  };
  RankTable table;
  table.ranks = {InfoOn("a")};
  EXPECT_EQ(CodeOf([&] { ExchangeInfos(late, 0, {InfoOn("a")}); }), ErrorCode::kDeadlineExceeded);
  EXPECT_EQ(CodeOf([&] { ExchangeReach(late, table, 1); }), ErrorCode::kDeadlineExceeded);
}

TEST(RankTable, DamagedDataOfALaterRankIsNamedByItsNumber) {
  nlohmann::json theirs = Process("b", 2);
  theirs[1].erase("port");
  try {
    ExchangeInfos(GatherOf({Process("a", 2)}, {theirs}), 1, {InfoOn("c")});
    FAIL() << "the table was accepted";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kDataLoss);
    EXPECT_NE(error.message().find("rank 4"), std::string::npos) << error.message();
  }
}

}  // namespace
}  // namespace hearth::collective
