#include "hearth/rendezvous/step_tracker.h"

#include <algorithm>

#include "hearth/base/error.h"

namespace hearth::rendezvous {

void StepTracker::Record(const GroupStep& report) {
  const auto& [group, rank, world, step] = report;
  Require(group.size() <= kMaxNameBytes, ErrorCode::kInvalidArgument,
          "a group's name has {} bytes; the limit is {}", group.size(), kMaxNameBytes);
  Require(world >= 1 && world <= kMaxRanks && rank >= 0 && rank < world,
          ErrorCode::kInvalidArgument, "rank {} cannot report a step in a group of {} ranks", rank,
          world);
  if (!groups_.contains(group) && groups_.size() == kMaxGroups) DropOldest();
  Group& known = groups_[group];
  if (known.next.empty()) known.next.resize(static_cast<size_t>(world));
  Require(known.next.size() == static_cast<size_t>(world), ErrorCode::kInvalidArgument,
          "rank {} reports {} ranks in its group, but other ranks report {}", rank, world,
          known.next.size());
  uint64_t& next = known.next[static_cast<size_t>(rank)];
  // Keeps the highest step, because a rank's reports may arrive in any order.
  next = std::max(next, step + 1);
  known.used = ++uses_;
}

std::vector<int> StepTracker::RanksBehind(const std::string& group, uint64_t step) const {
  std::vector<int> absent;
  const auto known = groups_.find(group);
  if (known == groups_.end()) return absent;
  const std::vector<uint64_t>& next = known->second.next;
  for (size_t rank = 0; rank < next.size(); ++rank) {
    // `next` is the step after the last reported one; 0 means that the rank has reported nothing.
    if (next[rank] <= step) absent.push_back(static_cast<int>(rank));
  }
  return absent;
}

void StepTracker::DropOldest() {
  // Searches all groups, of which there are at most 256, once for each new group beyond that limit.
  groups_.erase(std::min_element(groups_.begin(), groups_.end(), [](const auto& a, const auto& b) {
    return a.second.used < b.second.used;
  }));
}

}  // namespace hearth::rendezvous
