#pragma once

#include <string>
#include <vector>

namespace hearth::collective {

// Groups ranks by shared memory. Here, a "host" is a set of ranks that can map each other's memory.
class Topology {
 public:
  // Host of a rank, and the rank's index there.
  struct Location {
    int host = 0;
    int index = 0;  // among the ranks of the host
  };

  // reach[a][b] is true if rank a can open b's memory. It may be asymmetric, so only ranks that
  // reach each other share a host.
  explicit Topology(const std::vector<std::vector<bool>>& reach);

  int world() const { return static_cast<int>(locations_.size()); }
  const std::vector<std::vector<int>>& hosts() const { return hosts_; }
  Location Find(int rank) const { return locations_[static_cast<size_t>(rank)]; }
  const std::vector<int>& host_of(int rank) const {
    return hosts_[static_cast<size_t>(Find(rank).host)];
  }

  bool one_host() const { return hosts_.size() == 1; }
  bool one_rank_per_host() const { return hosts_.size() == locations_.size(); }
  // Number of ranks per host that communicate with other hosts: all if all hosts have the same
  // size, else one.
  int parts() const { return parts_; }
  // The ranks with this index on each host; `index` is less than parts().
  std::vector<int> Across(int index) const;

  // "shared memory", "tcp", "shared memory within 2 hosts, tcp between them"; `between` names the
  // transport between hosts.
  std::string Describe(const std::string& between) const;

 private:
  std::vector<std::vector<int>> hosts_;
  std::vector<Location> locations_;
  int parts_ = 1;
};

}  // namespace hearth::collective
