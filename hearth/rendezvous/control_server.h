// Authenticated connections to the ranks of one generation, watched by heartbeats. Carries
// messages and knows nothing of their meaning. One service thread does all input and output; it
// never waits for a single peer.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "hearth/base/deadline.h"
#include "hearth/base/error.h"
#include "hearth/base/fd.h"
#include "hearth/base/socket.h"
#include "hearth/base/thread.h"
#include "hearth/rendezvous/frame.h"
#include "hearth/rendezvous/handshake.h"
#include "hearth/rendezvous/link.h"

namespace hearth::rendezvous {

// Connections that did not become a member, by reason.
struct Refusals {
  int malformed = 0;   // not Hearth's handshake
  int proof = 0;       // another token, or the replay of an earlier handshake
  int generation = 0;  // an older or newer attempt
  int rank = 0;        // no such rank, or one that has come already
  int slow = 0;        // the handshake took too long, or there were too many of them
  int total() const { return malformed + proof + generation + rank + slow; }
};

struct ControlServerOptions {
  std::string bind_host;
  PortRange bind_ports;
  std::string token;
  uint32_t generation = 0;
  int world = 1;
  double handshake_timeout_s = 5;
  double heartbeat_interval_s = 1;
  double heartbeat_timeout_s = 10;
  Json welcome;  // the first message to every member
};

class ControlServer {
 public:
  // All calls come from the service thread. An Error that OnFrame throws drops the member.
  class Handler {
   public:
    virtual ~Handler() = default;
    virtual void OnJoin(int rank, const std::string& peer) = 0;
    virtual void OnFrame(int rank, const Json& frame) = 0;
    // The member is gone, with the reason as a predicate: "went away ..." (kUnavailable: its
    // connection has ended) or "has been silent ..." (kDeadlineExceeded).
    virtual void OnLost(int rank, ErrorCode code, const std::string& reason) = 0;
    // A timer: OnAlarm is called once NextAlarm's time has come.
    virtual Deadline NextAlarm() = 0;
    virtual void OnAlarm() = 0;
  };

  // Listens at once; `handler` outlives the server.
  ControlServer(ControlServerOptions options, Handler& handler);
  ~ControlServer();

  int port() const { return listener_.port(); }

  // Any thread. A rank that is not connected gets nothing.
  void Send(int rank, const Json& message);
  void SendAll(const Json& message);

  Refusals refusals() const;

  // Delivers what was sent, at most for a second, and closes all connections. Idempotent; not from
  // the service thread.
  void Stop();

 private:
  static constexpr int kEveryone = -1;

  void Run();
  void RequestStop();
  void Deliver();
  void Wait();
  Deadline NextTimeout();
  void Accept();
  // Whether one more client may come in now; drops the oldest stranger if there are too many.
  bool MakeRoom();
  void Serve(Link& link, short events);
  void Admit(Link& link, const std::string& claim);
  Verdict Judge(Identity identity) const;
  void Beat();
  void DropSilent();
  void Drop(Link& link, const std::string& reason, ErrorCode code = ErrorCode::kUnavailable);
  void SendTo(Link& link, const std::string& bytes);
  void Enqueue(int rank, const Json& message);
  void Wake() noexcept;
  void Count(int Refusals::*reason);

  const ControlServerOptions options_;
  const Credentials credentials_;
  Handler& handler_;
  TcpListener listener_;
  Fd wake_;

  // The service thread's own.
  std::vector<std::unique_ptr<Link>> links_;
  std::vector<bool> came_;  // by rank: a rank comes once in a generation
  Deadline next_beat_;
  Deadline accept_again_ = Deadline::After(0);
  Deadline stop_by_ = Deadline::Never();

  mutable std::mutex mutex_;
  std::vector<std::pair<int, std::string>> outbox_;
  Refusals refusals_;
  bool stopping_ = false;

  Thread thread_;
};

}  // namespace hearth::rendezvous
