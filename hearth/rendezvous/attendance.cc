#include "hearth/rendezvous/attendance.h"

#include <algorithm>

#include "hearth/base/error.h"

namespace hearth::rendezvous {

void Attendance::Come(const Attendee& attendee) {
  const auto& [group, rank, world, step] = attendee;
  Require(group.size() <= kLongestName, ErrorCode::kInvalidArgument,
          "a group's name has {} bytes, more than {}", group.size(), kLongestName);
  Require(world >= 1 && world <= kMostRanks && rank >= 0 && rank < world,
          ErrorCode::kInvalidArgument, "rank {} of {} ranks came to a step: there is no such rank",
          rank, world);
  if (!groups_.contains(group) && groups_.size() == kMostGroups) ForgetOne();
  Group& known = groups_[group];
  if (known.next.empty()) known.next.resize(static_cast<size_t>(world));
  Require(known.next.size() == static_cast<size_t>(world), ErrorCode::kInvalidArgument,
          "rank {} says that its group has {} ranks, others say {}", rank, world,
          known.next.size());
  uint64_t& next = known.next[static_cast<size_t>(rank)];
  next = std::max(next, step + 1);
  known.used = ++uses_;
}

std::vector<int> Attendance::Absent(const std::string& group, uint64_t step) const {
  std::vector<int> absent;
  const auto known = groups_.find(group);
  if (known == groups_.end()) return absent;
  const std::vector<uint64_t>& next = known->second.next;
  for (size_t rank = 0; rank < next.size(); ++rank) {
    if (next[rank] <= step) absent.push_back(static_cast<int>(rank));
  }
  return absent;
}

void Attendance::ForgetOne() {
  groups_.erase(std::min_element(groups_.begin(), groups_.end(), [](const auto& a, const auto& b) {
    return a.second.used < b.second.used;
  }));
}

}  // namespace hearth::rendezvous
