#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "hearth/rendezvous/frame.h"

namespace hearth::rendezvous {

// Tracks reservations, gathers and completion of a fixed number of ranks. Uses no sockets or
// threads; the coordinator synchronises access.
class Membership {
 public:
  explicit Membership(int world) : members_(static_cast<size_t>(world)) {}

  // Returns true if this was the last rank to reserve.
  bool Reserve(int rank, std::string host, Json info);
  bool complete() const { return reserved_ == members_.size(); }
  // Every rank's info, by rank. May be called only when complete.
  std::vector<Json> Infos() const;

  // Adds a rank's value to the gather `name`. If it was the last one, returns the values of all
  // ranks, by rank; the name may then be reused. If a rank calls again before that, the new value
  // replaces its earlier one.
  std::optional<std::vector<Json>> Gather(int rank, const std::string& name, Json value);

  void SetDone(int rank) { at(rank).done = true; }
  bool done(int rank) const { return at(rank).done; }
  const std::string& host(int rank) const { return at(rank).host; }

  // "ranks 1, 3 did not join the cluster; ranks 0, 2 joined from host a"
  std::string DescribeReservation() const;
  // The ranks that have not contributed to the gather: "rank 1 on host b, rank 3 on host c".
  std::string DescribeMissing(const std::string& gather) const;

 private:
  // State of one rank.
  struct State {
    std::string host;  // empty until it has reserved
    Json info;
    bool reserved = false;
    bool done = false;
  };
  State& at(int rank) { return members_.at(static_cast<size_t>(rank)); }
  const State& at(int rank) const { return members_.at(static_cast<size_t>(rank)); }

  std::vector<State> members_;
  size_t reserved_ = 0;
  std::map<std::string, std::map<int, Json>> gathers_;
};

}  // namespace hearth::rendezvous
