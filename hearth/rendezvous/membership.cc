#include "hearth/rendezvous/membership.h"

#include <fmt/ranges.h>

#include <algorithm>

#include <utility>

#include "hearth/rendezvous/rank_name.h"

namespace hearth::rendezvous {
namespace {

// Number of ranks listed by name, so that the line is readable with a thousand ranks.
constexpr size_t kNamedRanks = 16;

std::string List(const std::vector<std::string>& ranks) {
  const size_t named = std::min(ranks.size(), kNamedRanks);
  std::string list = fmt::format("{}", fmt::join(ranks.begin(), ranks.begin() + named, ", "));
  if (named == ranks.size()) return list;
  return fmt::format("{} and {} more", list, ranks.size() - named);
}

std::string ListNumbers(const std::vector<std::string>& ranks) {
  return fmt::format("{} {}", ranks.size() == 1 ? "rank" : "ranks", List(ranks));
}

}  // namespace

bool Membership::Reserve(int rank, std::string host, Json info) {
  State& member = at(rank);
  // Ignores a second reservation, because other ranks may already have the list with the first one.
  if (member.reserved) return false;
  member.host = std::move(host);
  member.info = std::move(info);
  member.reserved = true;
  ++reserved_;
  return complete();
}

std::vector<Json> Membership::Infos() const {
  std::vector<Json> infos;
  for (const State& member : members_) infos.push_back(member.info);
  return infos;
}

std::optional<std::vector<Json>> Membership::Gather(int rank, const std::string& name, Json value) {
  auto& values = gathers_[name];
  values[rank] = std::move(value);
  if (values.size() < members_.size()) return std::nullopt;
  // `values` has one entry per rank, sorted by rank.
  std::vector<Json> all;
  for (auto& [from, one] : values) all.push_back(std::move(one));
  gathers_.erase(name);
  return all;
}

std::string Membership::DescribeReservation() const {
  std::vector<std::string> missing;
  // Grouped by host, because usually a host or an executor is missing, not a single rank.
  std::map<std::string, std::vector<std::string>> by_host;
  for (size_t rank = 0; rank < members_.size(); ++rank) {
    const State& member = members_[rank];
    (member.reserved ? by_host[member.host] : missing).push_back(std::to_string(rank));
  }
  std::string text =
      fmt::format("{} of {} did not join the cluster", ListNumbers(missing), members_.size());
  if (by_host.empty()) return text + "; no rank did";
  const char* separator = "; ";
  for (const auto& [host, ranks] : by_host) {
    text += fmt::format("{}{} joined from host {}", std::exchange(separator, ", "),
                        ListNumbers(ranks), host);
  }
  return text;
}

std::string Membership::DescribeMissing(const std::string& gather) const {
  std::vector<std::string> missing;
  const auto found = gathers_.find(gather);
  for (size_t rank = 0; rank < members_.size(); ++rank) {
    if (found != gathers_.end() && found->second.contains(static_cast<int>(rank))) continue;
    missing.push_back(RankName(static_cast<int>(rank), members_[rank].host));
  }
  return List(missing);
}

}  // namespace hearth::rendezvous
