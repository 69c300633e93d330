// Rendezvous of one attempt (generation) of a run, in the driver or in rank 0's worker. Collects
// reservations, sends the member list, gathers values, forwards events, and reports the first
// failure to every rank. docs/format_control.md describes the messages.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "hearth/base/deadline.h"
#include "hearth/base/socket.h"
#include "hearth/rendezvous/control_server.h"
#include "hearth/rendezvous/event_queue.h"
#include "hearth/rendezvous/failure.h"
#include "hearth/rendezvous/membership.h"
#include "hearth/rendezvous/step_tracker.h"

namespace hearth::rendezvous {

// Options of Coordinator.
struct CoordinatorOptions : ControlServerOptions {  // the coordinator sets `welcome`
  std::string advertise_host;     // address to which members connect; empty: bind_host
  double reserve_timeout_s = 60;  // from the first reservation to the last
};

// The server side of a rendezvous. Any thread may call it; a service thread does all I/O.
class Coordinator : private ControlServer::Handler {
 public:
  // Starts listening at once. Throws kInvalidArgument for invalid options.
  explicit Coordinator(CoordinatorOptions options);
  ~Coordinator() override;  // calls Close()

  const std::string& host() const { return options_.advertise_host; }
  int port() const { return server_->port(); }

  // Returns every rank's info, by rank. Throws kDeadlineExceeded, naming the missing ranks, and
  // kAborted if a rank has failed.
  std::vector<Json> WaitForReservations(Deadline deadline);

  // Returns and removes the oldest event; the values of Done() are events, too. Returns nothing at
  // the deadline. If no event is left, also returns nothing, at once, after Close() and (only once)
  // after a failure. Does not throw. Only the newest 4096 log lines are kept; all other events are
  // kept until taken.
  std::optional<Event> NextEvent(Deadline deadline);
  // Number of log lines that newer ones have displaced since the last call of this function.
  int64_t TakeDroppedLogLines();

  // Sends `value` to every connected member.
  void Broadcast(const Json& value);

  // Reports a failure that the members cannot detect themselves; ignored after an earlier failure.
  // Rank -1 stands for no particular rank; `message` is then the whole text.
  void Fail(int rank, const std::string& host, const std::string& message);

  std::optional<Failure> failure() const;
  // True if all ranks have called Done().
  bool finished() const;
  Refusals refusals() const { return server_->refusals(); }

  // Delivers pending messages, for at most a second, and closes all connections; ranks that are not
  // done see a failure. Idempotent.
  void Close();

 private:
  void OnJoin(int rank, const std::string& peer) override;
  void OnFrame(int rank, const Json& frame) override;
  void OnLost(int rank, ErrorCode code, const std::string& reason) override;
  Deadline NextAlarm() override;
  void OnAlarm() override;

  // Handlers that require mutex_ to be locked.
  void OnReserve(int rank, const Json& frame);
  void OnGather(int rank, const Json& frame);
  // Answers a request; returns false for another type of frame.
  bool OnRequest(int rank, const std::string& type, const Json& frame);
  void OnFailure(Failure failure);
  void SetFailure(Failure failure);
  // True if every rank that has joined and is not done has reported a consequence.
  bool AllReportConsequences() const;
  const std::string& HostOf(int rank) const;

  CoordinatorOptions options_;

  mutable std::mutex mutex_;
  std::condition_variable changed_;
  Membership membership_;
  StepTracker step_tracker_;
  std::vector<std::string> peers_;  // by rank: address, used until the host name is known
  Deadline reserve_by_ = Deadline::Never();
  EventQueue events_;
  std::optional<Failure> failure_;
  std::optional<Failure> consequence_;  // the first consequence, until its cause is known
  std::set<int> consequence_ranks_;     // ranks that have reported a consequence
  Deadline cause_by_ = Deadline::Never();
  bool unreported_failure_ = false;  // failure_ has not yet ended a NextEvent()
  int done_ = 0;
  bool closed_ = false;

  // Declared last: its thread uses all other fields, and ends before they are destroyed.
  std::unique_ptr<ControlServer> server_;
};

}  // namespace hearth::rendezvous
