// Exchanges the ranks' connection data and reachability before they are connected.
#pragma once

#include <functional>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "hearth/collective/rank_info.h"

namespace hearth::collective {

// Gathers one value per process, in the order of the processes. Waits for all processes. Throws
// kDeadlineExceeded, naming the missing processes, if its own deadline passes, and kAborted if a
// rank has failed.
using Gather = std::function<std::vector<nlohmann::json>(const std::string& name,
                                                         const nlohmann::json& value)>;

// The connection data of all ranks of a group.
struct RankTable {
  std::vector<RankInfo> ranks;  // of all processes, by rank
  int first_local = 0;          // the first rank of this process
};

// Exchanges the connection data of all ranks. `own` contains the data of this process's ranks, and
// `process` is the number of this process. Waits and throws as `gather` does.
RankTable ExchangeInfos(const Gather& gather, int process, const std::vector<RankInfo>& own);

// Returns reach, where reach[a][b] is true if rank a can open the shared page of rank b. `local` is
// the number of ranks in this process. Waits and throws as `gather` does.
std::vector<std::vector<bool>> ExchangeReach(const Gather& gather, const RankTable& table,
                                             int local);

}  // namespace hearth::collective
