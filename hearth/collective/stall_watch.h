// Logs when an operation of a group waits for long: the operation and the ranks that have not
// reached it; again after twice the time, and so on; and when the operation continues.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "hearth/base/deadline.h"
#include "hearth/base/thread.h"
#include "hearth/collective/operation/call.h"
#include "hearth/collective/operation/peer.h"
#include "hearth/collective/step_reporter.h"

namespace hearth::collective {

// The environment's HEARTH_STALL_SECONDS, or else `preferred`; 0 means never. Throws
// kInvalidArgument for anything but seconds.
double StallSeconds(double preferred);

// Counts of this process, for programs that act on a stall.
struct StallCounts {
  uint64_t reports = 0;   // of waiting operations
  uint64_t timeouts = 0;  // operations whose deadline passed before a rank had arrived
};
StallCounts CountStalls();

// Belongs to one rank, whose thread calls Begin, End and MissingRanks. A background thread watches
// the running operation; operations are never blocked by it.
class StallWatch {
 public:
  // `group` is a name that no other group of the tracker has; `ranks` are its ranks in order.
  StallWatch(std::string group, std::vector<Peer> ranks, int self, double stall_s,
             std::shared_ptr<StepReporter> reporter);
  ~StallWatch();
  StallWatch(const StallWatch&) = delete;
  StallWatch& operator=(const StallWatch&) = delete;

  void Begin(const Call& call, Deadline deadline);
  void End(bool succeeded);

  // The ranks that have not reached the running operation: "rank 1 on host b". Empty if all have,
  // or if unknown, as for an operation that has just begun. Waits for at most a second per caller.
  std::string MissingRanks();
  // Counts an operation that failed because of MissingRanks().
  static void CountTimeout();

 private:
  using Clock = Deadline::Clock;

  // The current operation, or the last one.
  struct Running {
    uint64_t step = 0;  // counts the operations of the whole group, not those between two ranks
    uint64_t number = 0;
    Call call;
    Clock::time_point begun;
    Deadline deadline = Deadline::Never();
    bool runs = false;
    bool succeeded = false;

    double seconds() const { return std::chrono::duration<double>(Clock::now() - begun).count(); }
  };

  void Watch();
  void Poll();
  void Report(const Running& running);
  std::string ReasonOf(const Running& running);
  std::optional<std::vector<int>> QueryMissingRanks(const Running& running);
  std::string NamesOf(const std::vector<int>& ranks) const;
  Running Now();
  std::string Name() const { return ranks_[static_cast<size_t>(self_)].name(); }
  rendezvous::GroupStep Self(const Running& running) const;

  const std::string group_;
  const std::vector<Peer> ranks_;
  const int self_;
  const double stall_s_;
  const double tick_s_;
  const std::shared_ptr<StepReporter> reporter_;

  std::mutex query_mutex_;  // serialises queries

  std::mutex mutex_;
  std::condition_variable changed_;
  Running running_;
  bool ending_ = false;

  // Used by the thread only.
  uint64_t reported_step_ = 0;       // the last step that was reported to the tracker
  uint64_t seen_ = 0;                // the operation that the next report is about
  std::optional<Running> reported_;  // until it continues
  double next_report_s_ = 0;

  Thread thread_;  // last: it uses everything above
};

}  // namespace hearth::collective
