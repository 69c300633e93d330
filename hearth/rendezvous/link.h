#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "hearth/base/deadline.h"
#include "hearth/base/socket.h"
#include "hearth/rendezvous/frame.h"

namespace hearth::rendezvous {

// Server side of one connection: buffers input and output and tracks the last time data was
// received. Non-blocking. Used by the server's thread only.
class Link {
 public:
  // Expects a claim in response to `hello` until the deadline `handshake`.
  Link(Connection connection, std::string hello, Deadline handshake);

  // Sends the hello. Throws the errors of Send(), because the client may have disconnected before
  // it was accepted.
  void Greet() { Send(hello_); }

  // Reads available data; false at end of file. Throws Error if the connection failed.
  bool Receive();
  // Returns the bytes of the claim, once complete; all bytes after it are frames.
  std::optional<std::string> TakeClaim();
  // Returns the next message of a member. Throws the errors of FrameReader.
  std::optional<Json> TakeFrame() { return frames_.Next(); }

  // Writes as much as the socket accepts now, and the rest when it is writable again. Throws
  // kUnavailable if the peer closed the connection, kResourceExhausted if the peer does not read.
  void Send(std::string_view bytes);
  void Flush();
  bool flushed() const { return out_.empty(); }

  // Returns the connection and closes the link. Unsent data is lost.
  Connection Release();

  // Closes the socket; the server removes the link in its next iteration.
  void Close();
  bool closed() const { return closed_; }

  // Assigns the link to a rank, after the handshake.
  void SetRank(int rank) { rank_ = rank; }
  bool is_member() const { return rank_ >= 0; }
  int rank() const { return rank_; }

  int fd() const { return connection_.fd(); }
  const std::string& peer() const { return connection_.peer(); }
  const std::string& hello() const { return hello_; }
  Deadline handshake() const { return handshake_; }
  // Time from which the server may drop this client in favour of a newer one. A client that
  // finishes the handshake earlier is never dropped.
  Deadline replaceable() const { return replaceable_; }
  // Time at which silence counts as a failure: `timeout_s` after the last received byte.
  Deadline silent_after() const { return silent_after_; }
  void SetSilenceTimeout(double timeout_s);

 private:
  Connection connection_;
  std::string hello_;
  Deadline handshake_;
  Deadline replaceable_ = Deadline::After(0.1);
  Deadline silent_after_ = Deadline::Never();
  double silence_timeout_s_ = 0;
  int rank_ = -1;
  bool closed_ = false;
  std::string claim_;
  FrameReader frames_;
  std::string out_;  // the bytes from sent_ on are not sent yet
  size_t sent_ = 0;
};

// Accepts the next client; does not send the hello. Returns null if the client has disconnected, or
// if accepting failed, e.g. because no descriptor is free. After a failure, sets `accept_again` to
// the time of the next attempt.
std::unique_ptr<Link> AcceptLink(TcpListener& listener, double handshake_s, Deadline* accept_again);

}  // namespace hearth::rendezvous
