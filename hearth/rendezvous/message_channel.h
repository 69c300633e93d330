// Messages between two processes over a connected stream socket: the frames of frame.h, with
// descriptors attached to the first byte (unix sockets only) and followed by raw bytes if the
// reader knows their number. Nothing is read ahead, so the socket can be passed on between
// messages.
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

// If unauthenticated clients can reach the socket, perform a handshake (handshake.h) on
// connection() first. One thread receives; any thread may send, End or Close. After an exception
// the stream is unusable, unless the deadline passed before a message's first byte. kUnavailable:
// the peer has closed, or Close was called.
class MessageChannel {
 public:
  // A message, and the descriptors that were sent with it.
  struct Received {
    Json message;
    std::vector<Fd> descriptors;  // fewer than sent if this process has reached its limit
  };

  explicit MessageChannel(Connection connection);

  // `data` is sent unchanged after the message. No deadline: blocks until the peer reads, leaves,
  // or End is called. Throws kUnavailable.
  void Send(const Json& message, std::span<const int> descriptors = {}, std::string_view data = {});

  // The next message; empty at the end of the stream. The deadline is for the whole message. Throws
  // kDeadlineExceeded, kUnavailable, and kDataLoss as FrameReader does.
  std::optional<Received> Receive(Deadline deadline);
  // Receives bytes that follow a message. No deadline, as Send. Throws kUnavailable.
  void ReceiveData(void* data, size_t size);

  // Shuts both directions down, which ends blocked calls of other threads. Never throws.
  void End() noexcept;
  // End, and frees the descriptor once no other thread uses it. Idempotent.
  void Close() noexcept;
  // Returns the descriptor and closes the channel. No other thread may use the channel.
  Fd Release();

  // Null after Close.
  std::shared_ptr<Connection> connection() const;

 private:
  mutable std::mutex mutex_;  // guards connection_
  std::shared_ptr<Connection> connection_;
  std::mutex sending_;  // serialises messages
};

}  // namespace hearth::rendezvous
