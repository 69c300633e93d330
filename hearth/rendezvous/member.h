// One rank's membership in the cluster: a connection to the coordinator, with a thread that sends
// heartbeats and receives failures.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "hearth/base/deadline.h"
#include "hearth/base/error.h"
#include "hearth/base/socket.h"
#include "hearth/base/thread.h"
#include "hearth/rendezvous/failure.h"
#include "hearth/rendezvous/failure_watch.h"
#include "hearth/rendezvous/frame.h"
#include "hearth/rendezvous/step_tracker.h"

namespace hearth::rendezvous {

// Options of Member.
struct MemberOptions {
  std::string host;  // host of the coordinator
  int port = 0;
  std::string token;  // 64 hex digits
  uint32_t generation = 0;
  int rank = 0;
  int world = 1;
  std::string host_name;          // name of this rank's host, for messages
  double connect_timeout_s = 30;  // for the connection and handshake
  // Called from the member's thread with each value of Coordinator::Broadcast; must not block.
  std::function<void(const Json&)> on_message;
  // Called once, as the last callback, from the member's thread when the connection has closed.
  std::function<void()> on_end;
};

// One rank's connection to the coordinator. Any thread may call it. Waits throw kAborted with the
// first failure's text if any rank fails or the coordinator is lost.
class Member {
 public:
  // Connects and authenticates within connect_timeout_s. Throws kUnavailable, kDeadlineExceeded,
  // kPermissionDenied (token, generation or rank rejected) or kInvalidArgument (different world).
  explicit Member(MemberOptions options);
  // Destroying a member before Done() is a failure of its rank. Waits until the coordinator has
  // read all sent data, or has been silent for its heartbeat timeout.
  ~Member();

  int rank() const { return options_.rank; }
  int world() const { return options_.world; }
  uint32_t generation() const { return options_.generation; }
  const std::string& token() const { return options_.token; }
  const std::string& host_name() const { return options_.host_name; }
  double heartbeat_timeout_s() const { return heartbeat_timeout_s_; }

  // Waits for every rank and returns each rank's info, by rank. If the coordinator's
  // reserve_timeout_s passes, that is a failure that names the missing ranks (kAborted). Throws
  // kDeadlineExceeded if the coordinator does not report it.
  std::vector<Json> Reserve(const Json& info);

  // Gathers one value from each rank under `name`: waits for all ranks and returns their values, by
  // rank. The name may be reused after that; throws kInvalidArgument if another thread is still
  // waiting for it. Throws kDeadlineExceeded, naming the missing ranks.
  std::vector<Json> AllGather(const std::string& name, const Json& value, Deadline deadline);
  // Returns once all ranks have called Barrier with this name. Throws the errors of AllGather.
  void Barrier(const std::string& name, Deadline deadline) { AllGather(name, nullptr, deadline); }

  // Reports that a rank of a group has reached a step. The ranks of a group need not be members.
  void ReportStep(const GroupStep& step);
  // Returns the ranks of the group that have not reported the step to the coordinator; nullopt if
  // the coordinator does not respond within a second.
  std::optional<std::vector<int>> RanksBehind(const GroupStep& step);

  // Sends an event to the driver (Coordinator::NextEvent). Like all sends below, waits for at most
  // heartbeat_timeout_s. Does not throw if the coordinator is lost, because the member reports that
  // as a failure.
  void SendEvent(const Json& value);
  // Sends a log line, which may be dropped if there are many.
  void SendLogLine(const Json& value);
  // Reports that this rank is done and may leave. `value` is the rank's last event.
  void Done(const Json& value);
  // Reports that this rank failed, which fails all other ranks, too. Sets the failure's rank and
  // host. For catch blocks: never throws; logs a warning if the coordinator cannot be notified.
  void SendFailure(Failure failure) noexcept;

  std::optional<Failure> failure() const { return watch_.failure(); }
  // Calls `callback` once, from the member's thread, or at once if the failure is already known.
  // The callback must not destroy its own subscription.
  [[nodiscard]] FailureWatch::Subscription OnFailure(FailureWatch::Callback callback) {
    return watch_.Subscribe(std::move(callback));
  }

 private:
  void ReadWelcome(Deadline deadline);
  void Run();
  void Receive(Deadline deadline);
  void Dispatch(const Json& frame);
  void Send(const Json& message);
  void SendBytes(std::string_view bytes);
  void SetFailure(const Failure& failure);
  void SetLost(const std::string& reason);
  std::optional<Json> Request(const Json& request, const std::string& answer, Deadline deadline);

  const MemberOptions options_;
  Connection connection_;
  FrameReader frames_;  // after the constructor, only the thread uses it and silent_after_
  Deadline silent_after_ = Deadline::Never();
  double heartbeat_interval_s_ = 1;
  double heartbeat_timeout_s_ = 10;
  double reserve_timeout_s_ = 60;
  FailureWatch watch_;

  std::mutex send_mutex_;

  std::mutex mutex_;
  std::condition_variable changed_;
  std::map<std::string, std::optional<Json>> answers_;  // received answers, by pending request
  std::atomic<uint64_t> requests_ = 0;                  // number of RanksBehind requests so far
  bool may_leave_ = false;             // the connection may now close without a failure
  std::atomic<bool> leaving_ = false;  // nothing more will be sent

  Thread thread_;
};

}  // namespace hearth::rendezvous
