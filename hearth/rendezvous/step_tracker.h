#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace hearth::rendezvous {

// Rank `rank` of the `world` ranks of a group, and a step of this group.
struct GroupStep {
  std::string group;
  int rank = 0;
  int world = 1;
  uint64_t step = 0;
};

// Tracks which step each rank of a group has reached. A group is identified by a unique name. No
// sockets or threads: the coordinator synchronises access.
class StepTracker {
 public:
  static constexpr size_t kMaxGroups = 256;  // beyond this, the least recently used one is dropped
  static constexpr int kMaxRanks = 1 << 16;
  static constexpr size_t kMaxNameBytes = 64;

  // Throws kInvalidArgument for an invalid rank, a world that differs from the earlier one, or a
  // name that is too long.
  void Record(const GroupStep& report);
  // The ranks that have not reached `step`; empty for an unknown group.
  std::vector<int> RanksBehind(const std::string& group, uint64_t step) const;

 private:
  // Steps of the ranks of one group.
  struct Group {
    std::vector<uint64_t> next;  // by rank: the step after the last one, 0 before the first
    uint64_t used = 0;
  };
  void DropOldest();

  std::map<std::string, Group> groups_;
  uint64_t uses_ = 0;
};

}  // namespace hearth::rendezvous
