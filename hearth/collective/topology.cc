#include "hearth/collective/topology.h"

#include <fmt/format.h>

#include <algorithm>

namespace hearth::collective {

Topology::Topology(const std::vector<std::vector<bool>>& reach) {
  const int world = static_cast<int>(reach.size());
  const auto mutual = [&](int a, int b) {
    return reach[static_cast<size_t>(a)][static_cast<size_t>(b)] &&
           reach[static_cast<size_t>(b)][static_cast<size_t>(a)];
  };
  // Greedy: each rank joins the first host whose members all reach it. All ranks have the same
  // table, so they compute the same result without communication.
  for (int rank = 0; rank < world; ++rank) {
    const auto host = std::find_if(hosts_.begin(), hosts_.end(), [&](const auto& members) {
      return std::all_of(members.begin(), members.end(), [&](int m) { return mutual(rank, m); });
    });
    const auto index = static_cast<int>(host - hosts_.begin());
    if (host == hosts_.end()) hosts_.emplace_back();
    std::vector<int>& members = hosts_[static_cast<size_t>(index)];
    locations_.push_back({index, static_cast<int>(members.size())});
    members.push_back(rank);
  }
  const bool equal = std::all_of(hosts_.begin(), hosts_.end(), [&](const auto& members) {
    return members.size() == hosts_[0].size();
  });
  if (equal && !hosts_.empty()) parts_ = static_cast<int>(hosts_[0].size());
}

std::vector<int> Topology::Across(int index) const {
  std::vector<int> ranks;
  for (const auto& members : hosts_) ranks.push_back(members[static_cast<size_t>(index)]);
  return ranks;
}

std::string Topology::Describe(const std::string& between) const {
  if (one_host()) return "shared memory";
  if (one_rank_per_host()) return between;
  return fmt::format("shared memory within {} hosts, {} between them", hosts_.size(), between);
}

}  // namespace hearth::collective
