#pragma once

#include <atomic>
#include <functional>
#include <mutex>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "hearth/base/deadline.h"
#include "hearth/base/fd.h"
#include "hearth/base/thread.h"

namespace hearth::trainer {

// The trainer's end of a stream socket to its parent process. The socket carries one JSON object
// per line: the trainer first receives the job, then sends events. End of stream means that the
// parent process is gone.
class ControlChannel {
 public:
  static constexpr size_t kMaxLineBytes = 16 << 20;

  // `fd`: a connected stream socket.
  explicit ControlChannel(Fd fd);
  ~ControlChannel();
  ControlChannel(const ControlChannel&) = delete;
  ControlChannel& operator=(const ControlChannel&) = delete;

  // Returns the first line, without its newline. Throws kUnavailable at end of stream,
  // kDeadlineExceeded, or kInvalidArgument if the line is too long. Call before Watch.
  std::string ReadLine(Deadline deadline);

  // Starts a thread that calls `on_lost` once, when the peer closes the socket or dies.
  void Watch(std::function<void()> on_lost);

  // Writes one event. Any thread may call it; it waits for at most a minute and never throws. Once
  // the peer is gone or has not read for a minute, events are dropped. Watch reports the loss of
  // the reader.
  void Send(const nlohmann::json& event);

 private:
  void WatchUntilLost();
  bool WriteAll(const std::string& line);

  const Fd fd_;
  std::atomic<bool> closing_{false};
  std::mutex send_mutex_;
  bool broken_ = false;  // guarded by send_mutex_
  std::function<void()> on_lost_;
  std::optional<Thread> watcher_;
};

}  // namespace hearth::trainer
