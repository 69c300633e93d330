// Messages between two processes over one connected stream socket: the frames of frame.h, with
// descriptors beside the first byte (unix sockets only) and, after them, raw bytes if the reader
// knows how many. Nothing is read ahead, so the socket can be handed on between messages.
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

// Where others can reach the socket, a handshake (handshake.h) on connection() comes first. One
// thread receives, any thread may send, End or Close. After an exception the stream is unusable,
// unless a deadline passed before a message's first byte. kUnavailable: the peer is gone, or Close
// was called.
class MessageChannel {
 public:
  struct Received {
    Json message;
    std::vector<Fd> descriptors;  // fewer than were sent where this process can have no more
  };

  explicit MessageChannel(Connection connection);

  // `data` follows the message as it is. Waits for as long as the peer lives.
  void Send(const Json& message, std::span<const int> descriptors = {}, std::string_view data = {});

  // The next message; none at the end of the stream. The deadline is that of the whole message.
  // Throws kDataLoss as FrameReader does.
  std::optional<Received> Receive(Deadline deadline);
  // Bytes that follow a message.
  void ReceiveData(void* data, size_t size);

  // Ends both directions, and with them the waits of other threads. Never throws.
  void End() noexcept;
  // End, and frees the descriptor once no other thread uses it. Idempotent.
  void Close() noexcept;
  // Gives the descriptor away; closed after that. No other thread may use the channel.
  Fd Release();

  // Null once it is closed.
  std::shared_ptr<Connection> connection() const;

 private:
  mutable std::mutex mutex_;  // of connection_
  std::shared_ptr<Connection> connection_;
  std::mutex sending_;  // one message after the other
};

}  // namespace hearth::rendezvous
