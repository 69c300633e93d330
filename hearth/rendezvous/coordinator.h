// The meeting point of one attempt (generation) of a run, in the driver or in rank 0's worker:
// collects reservations, hands out the roster, gathers values, passes events on, and spreads the
// first failure to every rank. docs/format_control.md has the messages.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "hearth/base/deadline.h"
#include "hearth/base/socket.h"
#include "hearth/rendezvous/attendance.h"
#include "hearth/rendezvous/control_server.h"
#include "hearth/rendezvous/event_queue.h"
#include "hearth/rendezvous/failure.h"
#include "hearth/rendezvous/membership.h"

namespace hearth::rendezvous {

struct CoordinatorOptions {
  int world = 1;
  std::string token;  // 64 hex digits, see NewToken()
  uint32_t generation = 0;
  std::string bind_host = "127.0.0.1";
  PortRange bind_ports;
  std::string advertise_host;       // what members connect to; empty: bind_host
  double reserve_timeout_s = 60;    // from the first reservation to the last
  double heartbeat_interval_s = 1;  // of both sides; members learn it
  double heartbeat_timeout_s = 10;
  double handshake_timeout_s = 5;
};

// Any thread may call it. A service thread of its own does the work.
class Coordinator : private ControlServer::Handler {
 public:
  // Listens at once. Throws kInvalidArgument for options that make no sense.
  explicit Coordinator(CoordinatorOptions options);
  ~Coordinator() override;

  const std::string& host() const { return options_.advertise_host; }
  int port() const { return server_->port(); }

  // Every rank's info, by rank. Throws kDeadlineExceeded naming who is missing, kAborted when a
  // rank failed first.
  std::vector<Json> WaitRoster(Deadline deadline);

  // The oldest event that was not taken, Done()'s included. Nothing at the deadline; without
  // waiting, nothing when none is left after Close() or, once, after a failure. Of log lines only
  // the newest 4096 stay; all else stays until it is taken.
  std::optional<Event> NextEvent(Deadline deadline);
  // Log lines dropped in favour of newer ones since the last call.
  int64_t TakeDroppedLogLines();

  // To every member that is connected now.
  void Broadcast(const Json& value);

  // Spreads a failure that the members cannot see themselves; no effect after an earlier one. Rank
  // -1 means no single rank: `message` is then the whole text.
  void Fail(int rank, const std::string& host, const std::string& message);

  std::optional<Failure> failure() const;
  // All ranks called Done().
  bool finished() const;
  Refusals refusals() const { return server_->refusals(); }

  // Ends all connections; ranks that are not done see it as a failure. Idempotent.
  void Close();

 private:
  void OnJoin(int rank, const std::string& peer) override;
  void OnFrame(int rank, const Json& frame) override;
  void OnLost(int rank, ErrorCode code, const std::string& reason) override;
  Deadline NextAlarm() override;
  void OnAlarm() override;

  // These need mutex_.
  void OnReserve(int rank, const Json& frame);
  void OnGather(int rank, const Json& frame);
  // False for a frame of another type.
  bool OnQuestion(int rank, const std::string& type, const Json& frame);
  void SetFailure(Failure failure);
  const std::string& HostOf(int rank) const;

  CoordinatorOptions options_;

  mutable std::mutex mutex_;
  std::condition_variable changed_;
  Membership membership_;
  Attendance attendance_;
  std::vector<std::string> peers_;  // by rank: its address, until its reservation names its host
  Deadline reserve_by_ = Deadline::Never();
  EventQueue events_;
  std::optional<Failure> failure_;
  bool untold_failure_ = false;  // NextEvent has not returned for it
  int done_ = 0;
  bool closed_ = false;

  // Last: its thread uses everything above, and ends first.
  std::unique_ptr<ControlServer> server_;
};

}  // namespace hearth::rendezvous
