#include "hearth/trainer/job/control_channel.h"

#include <poll.h>
#include <sys/socket.h>

#include <cerrno>

#include "hearth/base/error.h"
#include "hearth/base/socket.h"

namespace hearth::trainer {
namespace {

// A worker that reads nothing for this long is stuck. Further events are then dropped and the
// training continues.
constexpr double kSendTimeoutSeconds = 60;

}  // namespace

ControlChannel::ControlChannel(Fd fd) : fd_(std::move(fd)) {}

ControlChannel::~ControlChannel() {
  closing_ = true;
  if (watcher_) {
    shutdown(fd_.get(), SHUT_RD);  // wakes the watcher
    watcher_->Join();
  }
}

std::string ControlChannel::ReadLine(Deadline deadline) {
  std::string line;
  char buffer[64 << 10];
  for (;;) {
    Require(PollOne(fd_.get(), POLLIN, deadline) != 0, ErrorCode::kDeadlineExceeded,
            "the control channel received only {} bytes of a job before the deadline", line.size());
    // Peeks first, so that bytes after the newline are left for the watcher.
    const ssize_t seen = recv(fd_.get(), buffer, sizeof buffer, MSG_PEEK);
    if (seen < 0 && errno == EINTR) continue;
    if (seen < 0) ThrowErrno(errno, "cannot read the job from the control channel");
    Require(seen > 0, ErrorCode::kUnavailable,
            "the control channel ended after {} bytes, before the job's line was complete",
            line.size());
    const std::string_view part(buffer, static_cast<size_t>(seen));
    const size_t newline = part.find('\n');
    const size_t take = newline == part.npos ? part.size() : newline + 1;
    if (recv(fd_.get(), buffer, take, 0) < 0) ThrowErrno(errno, "cannot read the control channel");
    line.append(part.substr(0, newline == part.npos ? take : newline));
    Require(line.size() <= kMaxLineBytes, ErrorCode::kInvalidArgument,
            "the job's line is longer than {} bytes", kMaxLineBytes);
    if (newline != part.npos) return line;
  }
}

void ControlChannel::Watch(std::function<void()> on_lost) {
  on_lost_ = std::move(on_lost);
  watcher_.emplace("control", [this] { WatchUntilLost(); });
}

void ControlChannel::WatchUntilLost() {
  char ignored[4096];
  for (;;) {
    const ssize_t count = recv(fd_.get(), ignored, sizeof ignored, 0);
    if (count > 0 || (count < 0 && errno == EINTR)) continue;
    if (!closing_) on_lost_();
    return;
  }
}

void ControlChannel::Send(const nlohmann::json& event) {
  // Texts come from layers and peers, so invalid UTF-8 is replaced instead of losing the event.
  std::string line = event.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
  line += '\n';
  // After a timeout, the last line may be incomplete, which makes all later lines unreadable. The
  // channel therefore stays broken.
  std::lock_guard lock(send_mutex_);
  if (!broken_) broken_ = !WriteAll(line);
}

bool ControlChannel::WriteAll(const std::string& line) {
  const Deadline deadline = Deadline::After(kSendTimeoutSeconds);
  size_t sent = 0;
  while (sent < line.size()) {
    const ssize_t count =
        send(fd_.get(), line.data() + sent, line.size() - sent, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (count >= 0) {
      sent += static_cast<size_t>(count);
    } else if (errno == EAGAIN) {
      if (PollOne(fd_.get(), POLLOUT, deadline) == 0) return false;
    } else if (errno != EINTR) {
      return false;
    }
  }
  return true;
}

}  // namespace hearth::trainer
