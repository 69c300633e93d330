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

// Numbers of rejected connections, by reason.
struct Refusals {
  int malformed = 0;   // does not use this protocol
  int proof = 0;       // wrong token, or a replay of an earlier handshake
  int generation = 0;  // client of another attempt of the run
  int rank = 0;        // no such rank, or a rank that has already joined
  int slow = 0;        // handshake timed out, or too many were open
  int total() const { return malformed + proof + generation + rank + slow; }
};

// Options of ControlServer.
struct ControlServerOptions {
  std::string bind_host = "127.0.0.1";
  PortRange bind_ports;
  std::string token;  // 64 hex digits, see NewToken()
  uint32_t generation = 0;
  int world = 1;
  double handshake_timeout_s = 5;
  double heartbeat_interval_s = 1;  // of both sides; sent to the members in the welcome
  double heartbeat_timeout_s = 10;
  Json welcome;  // the first message to every member
};

// Accepts authenticated connections from the ranks of one generation and monitors them by
// heartbeats. Transports messages without interpreting them. One service thread does all I/O and
// never blocks on a single peer.
class ControlServer {
 public:
  static constexpr int kAllRanks = -1;

  // Callbacks of the server, all on the service thread. If OnFrame throws an Error, the server
  // drops the member.
  class Handler {
   public:
    virtual ~Handler() = default;
    virtual void OnJoin(int rank, const std::string& peer) = 0;
    virtual void OnFrame(int rank, const Json& frame) = 0;
    // Called when a member is lost. `reason` is a predicate: "went away ..." (kUnavailable: its
    // connection has closed) or "has been silent ..." (kDeadlineExceeded).
    virtual void OnLost(int rank, ErrorCode code, const std::string& reason) = 0;
    // A timer: the server calls OnAlarm when the time of NextAlarm() has passed.
    virtual Deadline NextAlarm() = 0;
    virtual void OnAlarm() = 0;
  };

  // Starts listening at once; `handler` must outlive the server.
  ControlServer(ControlServerOptions options, Handler& handler);
  ~ControlServer();

  int port() const { return listener_.port(); }

  // Sends to one rank or to kAllRanks. Any thread. Messages to a rank that is not connected are
  // dropped.
  void Send(int rank, const Json& message);

  Refusals refusals() const;

  // Delivers pending messages, for at most a second, and closes all connections. Idempotent; must
  // not be called from the service thread.
  void Stop();

 private:
  void Run();
  void RequestStop();
  void Deliver();
  void Wait();
  Deadline NextTimeout();
  void Accept();
  // Returns true if one more client may be accepted now. Drops the oldest unauthenticated client if
  // there are too many.
  bool DropOldestIfFull();
  void Serve(Link& link, short events);
  void Admit(Link& link, const std::string& claim);
  Verdict Judge(Identity identity) const;
  void SendHeartbeats();
  void DropSilent();
  void Drop(Link& link, const std::string& reason, ErrorCode code = ErrorCode::kUnavailable);
  void SendTo(Link& link, const std::string& bytes);
  void Count(int Refusals::*reason);

  const ControlServerOptions options_;
  const Credentials credentials_;
  Handler& handler_;
  TcpListener listener_;
  Fd wake_;

  // Used by the service thread only.
  std::vector<std::unique_ptr<Link>> links_;
  std::vector<bool> joined_;  // by rank; a rank may join once per generation
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
