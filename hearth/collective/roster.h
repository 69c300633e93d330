// How the ranks of all processes get to know each other before they can talk.
#pragma once

#include <functional>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "hearth/collective/rank_info.h"

namespace hearth::collective {

// Brings one value per process together, in the order of the processes. Throws at its deadline.
using Gather = std::function<std::vector<nlohmann::json>(const std::string& name,
                                                         const nlohmann::json& value)>;

struct Roster {
  std::vector<RankInfo> ranks;  // of all processes, by rank
  int first_local = 0;          // the rank of this process's first
};

// `own` are the ranks of process number `process`.
Roster ExchangeInfos(const Gather& gather, int process, const std::vector<RankInfo>& own);

// reach[a][b]: rank a can open the shared page of rank b. `local` ranks belong to this process.
std::vector<std::vector<bool>> ExchangeReach(const Gather& gather, const Roster& roster, int local);

}  // namespace hearth::collective
