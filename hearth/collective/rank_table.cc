#include "hearth/collective/rank_table.h"

#include "hearth/base/error.h"

namespace hearth::collective {
namespace {

// Compares the host ids first, because the process id of a rank on another host may belong to an
// unrelated process here.
bool CanShare(const RankInfo& own, const RankInfo& other) {
  return own.shares_memory && other.shares_memory && own.host_id == other.host_id &&
         OpenSharedPage(other.page).has_value();
}

}  // namespace

RankTable ExchangeInfos(const Gather& gather, int process, const std::vector<RankInfo>& own) {
  nlohmann::json mine = nlohmann::json::array();
  for (const RankInfo& info : own) mine.push_back(info.ToJson());
  const std::vector<nlohmann::json> all = gather("collective ranks", mine);
  RankTable table;
  for (size_t i = 0; i < all.size(); ++i) {
    if (static_cast<int>(i) == process) table.first_local = static_cast<int>(table.ranks.size());
    for (const nlohmann::json& rank : all[i]) {
      table.ranks.push_back(RankInfo::FromJson(rank, static_cast<int>(table.ranks.size())));
    }
  }
  return table;
}

std::vector<std::vector<bool>> ExchangeReach(const Gather& gather, const RankTable& table,
                                             int local) {
  const RankInfo& own = table.ranks[static_cast<size_t>(table.first_local)];
  nlohmann::json row = nlohmann::json::array();
  for (const RankInfo& other : table.ranks) row.push_back(CanShare(own, other));
  // All ranks of this process can open the same pages, but each of them needs a row.
  const nlohmann::json mine(static_cast<size_t>(local), row);
  std::vector<std::vector<bool>> reach;
  try {
    for (const nlohmann::json& process : gather("collective reach", mine)) {
      for (const nlohmann::json& rank : process) reach.push_back(rank.get<std::vector<bool>>());
    }
  } catch (const nlohmann::json::exception& error) {
    throw Error(ErrorCode::kDataLoss, "a process sent an invalid reachability table", error);
  }
  const size_t world = table.ranks.size();
  Require(reach.size() == world, ErrorCode::kDataLoss, "{} of {} ranks sent their reachability",
          reach.size(), world);
  for (size_t rank = 0; rank < world; ++rank) {
    Require(reach[rank].size() == world, ErrorCode::kDataLoss,
            "the reachability table of rank {} has {} of {} ranks", rank, reach[rank].size(),
            world);
  }
  return reach;
}

}  // namespace hearth::collective
