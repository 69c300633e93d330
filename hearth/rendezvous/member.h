// One rank's place in the cluster: a connection to the coordinator, held by a thread that sends
// heartbeats and learns of failures.
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
#include "hearth/rendezvous/attendance.h"
#include "hearth/rendezvous/failure.h"
#include "hearth/rendezvous/failure_watch.h"
#include "hearth/rendezvous/frame.h"

namespace hearth::rendezvous {

struct MemberOptions {
  std::string host;  // of the coordinator
  int port = 0;
  std::string token;  // 64 hex digits
  uint32_t generation = 0;
  int rank = 0;
  int world = 1;
  std::string host_name;          // what others call this host in messages
  double connect_timeout_s = 30;  // for connection and handshake
  // Called from the member's thread with what Coordinator::Broadcast sent; must not block.
  std::function<void(const Json&)> on_message;
  // Called once, last of all, from the member's thread when the connection is over.
  std::function<void()> on_end;
};

// Any thread may call it. Waits throw kAborted with the first failure's text when any rank fails or
// the coordinator goes away.
class Member {
 public:
  // Connects and authenticates. Throws kUnavailable, kDeadlineExceeded, kPermissionDenied (token,
  // generation or rank refused) or kInvalidArgument (another world).
  explicit Member(MemberOptions options);
  // A member that leaves without Done() is a failure of its rank. Waits until the coordinator has
  // read what was sent, or was silent for its heartbeat timeout.
  ~Member();

  int rank() const { return options_.rank; }
  int world() const { return options_.world; }
  uint32_t generation() const { return options_.generation; }
  const std::string& token() const { return options_.token; }
  const std::string& host_name() const { return options_.host_name; }

  // Waits for every rank and gives each one's info, by rank. The coordinator's time limit applies.
  std::vector<Json> Reserve(const Json& info);

  // Each rank's value, by rank. One wait per name at a time; a name may be used again afterwards.
  // kDeadlineExceeded names the ranks that did not come.
  std::vector<Json> AllGather(const std::string& name, const Json& value, Deadline deadline);
  void Barrier(const std::string& name, Deadline deadline) { AllGather(name, nullptr, deadline); }

  // A rank of a group, whose ranks need not be members, has come to a step of it.
  void Come(const Attendee& attendee);
  // The ranks of its group of which the coordinator does not know that they have come so far.
  // Nothing where it does not answer at once.
  std::optional<std::vector<int>> Absent(const Attendee& attendee);

  // For the coordinator's NextEvent.
  void SendEvent(const Json& value);
  // The same for a log line, which may be left out where many come at once.
  void SendLogLine(const Json& value);
  // This rank is done: from now on it may leave. Its value is the rank's last event.
  void Done(const Json& value);
  // This rank fails, and all others with it. For catch blocks: never throws, and logs it when the
  // coordinator cannot be told.
  void SendFailure(const Error& error, const Json& details = Json::object()) noexcept;

  std::optional<Failure> failure() const { return watch_.failure(); }
  // `callback` is called once, from the member's thread, or at once when the failure is already
  // known. It must not destroy its own subscription.
  [[nodiscard]] FailureWatch::Subscription OnFailure(FailureWatch::Callback callback) {
    return watch_.Subscribe(std::move(callback));
  }

 private:
  void ReadWelcome(Deadline deadline);
  void Run();
  void Receive(Deadline deadline);
  void Dispatch(const Json& frame);
  void Send(const Json& message);
  void SetFailure(const Failure& failure);
  void SetLost(const std::string& reason);
  std::optional<Json> Ask(const Json& question, const std::string& answer, Deadline deadline);

  const MemberOptions options_;
  Connection connection_;
  FrameReader frames_;  // after the constructor the thread's own, like silent_after_
  Deadline silent_after_ = Deadline::Never();
  double heartbeat_interval_s_ = 1;
  double heartbeat_timeout_s_ = 10;
  double reserve_timeout_s_ = 60;
  FailureWatch watch_;

  std::mutex send_mutex_;

  std::mutex mutex_;
  std::condition_variable changed_;
  std::map<std::string, std::optional<Json>> answers_;  // what is waited for, and what came
  std::atomic<uint64_t> questions_ = 0;                 // of who is absent
  bool may_leave_ = false;             // the end of the connection is no failure any more
  std::atomic<bool> leaving_ = false;  // nothing more will be sent

  Thread thread_;
};

}  // namespace hearth::rendezvous
