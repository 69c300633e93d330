// Messages between two processes over a connected stream socket, in the frames of frame.h. A
// message may carry descriptors with its first byte (unix sockets only), and may be followed by raw
// bytes if the reader knows their number. Nothing is read ahead, so the socket can be passed on
// between messages.
#pragma once

#include <cstddef>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "hearth/base/deadline.h"
#include "hearth/base/fd.h"
#include "hearth/base/socket.h"
#include "hearth/rendezvous/frame.h"

namespace hearth::rendezvous {

// Sends and receives messages. If unauthenticated clients can reach the socket, perform a handshake
// (handshake.h) on connection() first. One thread receives; any thread may call Send, End or Close.
// After an exception the stream is unusable, unless the deadline passed before a message's first
// byte. kUnavailable means that the peer has closed, or that Close was called.
class MessageChannel {
 public:
  // A message, and the descriptors that were sent with it.
  struct Received {
    Json message;
    std::vector<Fd> descriptors;  // some are lost at this process's descriptor limit
  };

  explicit MessageChannel(Connection connection);

  // Sends `data` unchanged after the message. Has no deadline: blocks until the peer reads or
  // leaves, or End is called. Throws kUnavailable.
  void Send(const Json& message, std::span<const int> descriptors = {}, std::string_view data = {});

  // Returns the next message; empty at the end of the stream. The deadline limits the whole
  // message. Throws kDeadlineExceeded, kUnavailable, and the errors of FrameReader.
  std::optional<Received> Receive(Deadline deadline);
  // Receives bytes that follow a message. Like Send, has no deadline. Throws kUnavailable.
  void ReceiveData(void* data, size_t size);

  // Shuts both directions down, which ends blocked calls of other threads. Never throws.
  void End() noexcept;
  // Calls End, and closes the descriptor once no other thread uses it. Idempotent.
  void Close() noexcept;
  // Returns the descriptor and closes the channel. No other thread may use the channel.
  Fd Release();

  // Null after Close().
  std::shared_ptr<Connection> connection() const;

 private:
  mutable std::mutex mutex_;  // guards connection_
  std::shared_ptr<Connection> connection_;
  std::mutex sending_;  // serialises messages
};

}  // namespace hearth::rendezvous
