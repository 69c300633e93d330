// Which ranks of a group have come to which of its steps. A group is known by a name that nobody
// else uses. Knows no sockets and no threads: the coordinator guards it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace hearth::rendezvous {

// Rank `rank` of the `world` ranks of a group, and a step of this group.
struct Attendee {
  std::string group;
  int rank = 0;
  int world = 1;
  uint64_t step = 0;
};

class Attendance {
 public:
  static constexpr size_t kMostGroups = 256;  // beyond these, the one longest unused is forgotten
  static constexpr int kMostRanks = 1 << 16;
  static constexpr size_t kLongestName = 64;

  // Throws kInvalidArgument for a rank that cannot be, a world that is not the one before, or a
  // name that is too long.
  void Come(const Attendee& attendee);
  // The ranks that have come to none of the steps from `step` on; none for an unknown group.
  std::vector<int> Absent(const std::string& group, uint64_t step) const;

 private:
  struct Group {
    std::vector<uint64_t> next;  // by rank: the step after the last one, 0 before the first
    uint64_t used = 0;
  };
  void ForgetOne();

  std::map<std::string, Group> groups_;
  uint64_t uses_ = 0;
};

}  // namespace hearth::rendezvous
