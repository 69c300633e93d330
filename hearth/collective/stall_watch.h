// Says in the log when an operation of a group waits for long, for which operation, and which ranks
// have not come to it; again after twice the time, and so on; and when it goes on.
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
#include "hearth/collective/call.h"
#include "hearth/collective/peer.h"
#include "hearth/collective/roll_call.h"

namespace hearth::collective {

// `preferred`, or what HEARTH_STALL_SECONDS says in the environment; 0 means never. Throws
// kInvalidArgument for anything but seconds.
double StallSeconds(double preferred);

// Belongs to one rank, whose thread calls Begin, End and Absentees. A thread of its own looks at
// what runs; operations themselves wait for nothing here.
class StallWatch {
 public:
  // `group` is a name that no other group of the roll has; `ranks` are its ranks in order.
  StallWatch(std::string group, std::vector<Peer> ranks, int self, double stall_s,
             std::shared_ptr<RollCall> roll);
  ~StallWatch();
  StallWatch(const StallWatch&) = delete;
  StallWatch& operator=(const StallWatch&) = delete;

  void Begin(const Call& call, Deadline deadline);
  void End(bool succeeded);

  // Of the operation that runs, the ranks that have not come to it: "rank 1 on host b". Empty where
  // all have, or where that is not known, as of an operation that has just begun.
  std::string Absentees();

 private:
  using Clock = Deadline::Clock;

  struct Running {
    uint64_t step = 0;  // counts the operations of all ranks, not those between two
    uint64_t number = 0;
    Call call;
    Clock::time_point begun;
    Deadline deadline = Deadline::Never();
    bool runs = false;
    bool succeeded = false;

    double seconds() const { return std::chrono::duration<double>(Clock::now() - begun).count(); }
  };

  void Watch();
  void Look();
  void Report(const Running& running);
  std::string ReasonOf(const Running& running);
  std::optional<std::vector<int>> Ask(const Running& running);
  std::string NamesOf(const std::vector<int>& ranks) const;
  Running Now();
  std::string Name() const { return ranks_[static_cast<size_t>(self_)].name(); }
  rendezvous::Attendee Self(const Running& running) const;

  const std::string group_;
  const std::vector<Peer> ranks_;
  const int self_;
  const double stall_s_;
  const double tick_s_;
  const std::shared_ptr<RollCall> roll_;

  std::mutex ask_mutex_;  // one question at a time

  std::mutex mutex_;
  std::condition_variable changed_;
  Running running_;
  bool ending_ = false;

  // The thread's own.
  uint64_t told_ = 0;                // the step of which the roll was told
  uint64_t seen_ = 0;                // the operation of which the next report is
  std::optional<Running> reported_;  // until it goes on
  double next_report_s_ = 0;

  Thread thread_;  // last: it uses everything above
};

}  // namespace hearth::collective
