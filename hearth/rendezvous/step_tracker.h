#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace hearth::rendezvous {

// A step of rank `rank` in a group of `world` ranks.
struct GroupStep {
  std::string group;
  int rank = 0;
  int world = 1;
  uint64_t step = 0;
};

// Tracks which step each rank of a group has reached. A group is identified by a unique name. Uses
// no sockets or threads; the coordinator synchronises access.
class StepTracker {
 public:
  static constexpr size_t kMaxGroups = 256;  // beyond, the least recently used is dropped
  static constexpr int kMaxRanks = 1 << 16;
  static constexpr size_t kMaxNameBytes = 64;

  // Adds a report. Throws kInvalidArgument for an invalid rank, a world that differs from earlier
  // reports, or a name that is too long.
  void Record(const GroupStep& report);
  // The ranks that have not reached `step`; empty for an unknown group.
  std::vector<int> RanksBehind(const std::string& group, uint64_t step) const;

 private:
  // Steps of one group's ranks, and when the group was last used.
  struct Group {
    std::vector<uint64_t> next;  // by rank: last reported step + 1, 0 before the first
    uint64_t used = 0;
  };
  void DropOldest();

  std::map<std::string, Group> groups_;
  uint64_t uses_ = 0;
};

}  // namespace hearth::rendezvous
