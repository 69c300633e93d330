// Logs a warning when an operation of a group waits for long, naming the operation and the ranks
// that have not reached it. Repeats the warning at doubling intervals, and logs when the operation
// continues.
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

// Returns HEARTH_STALL_SECONDS of the environment, else `preferred`; 0 disables the warnings.
// Throws kInvalidArgument if the variable is not a number of seconds.
double StallSeconds(double preferred);

// Counters of this process, for programs that react to stalls.
struct StallCounts {
  uint64_t reports = 0;   // warnings about waiting operations
  uint64_t timeouts = 0;  // operations whose deadline passed before all ranks had arrived
};
StallCounts CountStalls();

// Watches the operations of one rank, whose thread calls Begin, End and MissingRanks. A background
// thread checks the running operation and never blocks it.
class StallWatch {
 public:
  // `group` is a name that is unique among the groups of the step tracker; `ranks` are the group's
  // ranks in order.
  StallWatch(std::string group, std::vector<Peer> ranks, int self, double stall_s,
             std::shared_ptr<StepReporter> reporter);
  ~StallWatch();
  StallWatch(const StallWatch&) = delete;
  StallWatch& operator=(const StallWatch&) = delete;

  void Begin(const Call& call, Deadline deadline);
  void End(bool succeeded);

  // Returns the ranks that have not reached the running operation: "rank 1 on host b". Returns an
  // empty string if all ranks have reached it or if this is unknown, as when the operation has just
  // begun. Waits for at most a second per caller.
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

  // Used only by thread_.
  uint64_t reported_step_ = 0;       // the last step that was reported to the step tracker
  uint64_t seen_ = 0;                // number of the operation that the next warning is about
  std::optional<Running> reported_;  // the last operation that was warned about, until it ends
  double next_report_s_ = 0;

  Thread thread_;  // last, so that it is joined before the members that it uses are destroyed
};

}  // namespace hearth::collective
