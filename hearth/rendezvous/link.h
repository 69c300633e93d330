// One connection as a server sees it: bytes in, bytes out, and when it was last heard from. Never
// waits. Used by the server's thread only.
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

class Link {
 public:
  // Expects a claim that answers `hello` until `handshake`.
  Link(Connection connection, std::string hello, Deadline handshake);

  // Sends the hello. Throws as Send does: the client may have left before it was accepted.
  void Greet() { Send(hello_); }

  // Reads what has arrived; false at end of file. Throws Error when the connection broke.
  bool Receive();
  // Bytes of the handshake, once all of them are here; what follows them are frames.
  std::optional<std::string> TakeClaim();
  // The next message of a member. Throws kDataLoss as FrameReader does.
  std::optional<Json> TakeFrame() { return frames_.Next(); }

  // Writes what the socket takes now, the rest when it is writable again. Throws kUnavailable when
  // the peer closed, kResourceExhausted when it does not read what waits for it.
  void Send(std::string_view bytes);
  void Flush();
  bool flushed() const { return out_.empty(); }

  // Gives the connection away; the link is closed then. What Send left behind is lost.
  Connection Release();

  // The socket's end; the server forgets the link at its next turn.
  void Close();
  bool closed() const { return closed_; }

  // From the accepted handshake on, the link belongs to a rank.
  void SetRank(int rank) { rank_ = rank; }
  bool is_member() const { return rank_ >= 0; }
  int rank() const { return rank_; }

  int fd() const { return connection_.fd(); }
  const std::string& peer() const { return connection_.peer(); }
  const std::string& hello() const { return hello_; }
  Deadline handshake() const { return handshake_; }
  // When a later client may take this one's place: a quick one never loses it to a crowd.
  Deadline replaceable() const { return replaceable_; }
  // When silence becomes a failure; every received byte puts it off by `timeout_s`.
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
  std::string out_;  // from sent_ on it waits to be sent
  size_t sent_ = 0;
};

// Accepts the next client, without a greeting. Null if it has left again, and if none can be
// accepted, as while descriptors are used up: `accept_again` then says when to try again.
std::unique_ptr<Link> AcceptLink(TcpListener& listener, double handshake_s, Deadline* accept_again);

}  // namespace hearth::rendezvous
