#include "hearth/rendezvous/control_server.h"

#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

namespace hearth::rendezvous {
namespace {

// Maximum number of connections whose handshake is not complete, not counting one per rank. If
// there are more, the oldest is dropped. Slow clients cannot lock members out, because a member
// completes its handshake in one round trip.
constexpr std::ptrdiff_t kMaxUnauthenticated = 64;
// Seconds for which Stop() waits until members have read the last messages.
constexpr double kFlushTimeout = 1.0;

// The `reason` for OnLost if a member closed its connection.
constexpr const char* kClosedWithoutDone =
    "went away: it closed the connection without reporting that it was done";

}  // namespace

ControlServer::ControlServer(ControlServerOptions options, Handler& handler)
    : options_(std::move(options)),
      credentials_(options_.token, kControlService),
      handler_(handler),
      listener_(options_.bind_host, options_.bind_ports),
      wake_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)),
      joined_(static_cast<size_t>(options_.world)),
      next_beat_(Deadline::After(options_.heartbeat_interval_s)) {
  if (!wake_.valid()) ThrowErrno(errno, "cannot create the control server's eventfd");
  // Started last, because the thread uses all other fields.
  thread_ = Thread("hearth-control", [this] { Run(); });
}

ControlServer::~ControlServer() { RequestStop(); }

void ControlServer::Send(int rank, const Json& message) {
  std::string bytes = EncodeMessage(message);
  const std::lock_guard lock(mutex_);
  outbox_.emplace_back(rank, std::move(bytes));
  ::eventfd_write(wake_.get(), 1);
}

Refusals ControlServer::refusals() const {
  const std::lock_guard lock(mutex_);
  return refusals_;
}

void ControlServer::RequestStop() {
  const std::lock_guard lock(mutex_);
  stopping_ = true;
  ::eventfd_write(wake_.get(), 1);
}

void ControlServer::Stop() {
  RequestStop();
  thread_.Join();
}

void ControlServer::Run() {
  while (true) {
    // Each iteration sends what other threads have queued, waits for sockets and timers, then
    // checks the timers. Only this thread calls the handler, so these calls need no lock.
    Deliver();
    const bool flushed =
        std::all_of(links_.begin(), links_.end(), [](const auto& link) { return link->flushed(); });
    if (stop_by_.expired() || (stop_by_.at() != Deadline::Never().at() && flushed)) break;
    Wait();
    DropSilent();
    SendHeartbeats();
    if (handler_.NextAlarm().expired()) handler_.OnAlarm();
  }
  links_.clear();
}

void ControlServer::Deliver() {
  std::vector<std::pair<int, std::string>> outbox;
  {
    const std::lock_guard lock(mutex_);
    outbox.swap(outbox_);
    if (stopping_ && stop_by_.at() == Deadline::Never().at()) {
      stop_by_ = Deadline::After(kFlushTimeout);
    }
  }
  for (const auto& [rank, bytes] : outbox) {
    for (const auto& link : links_) {
      if (link->is_member() && (rank == kAllRanks || rank == link->rank())) SendTo(*link, bytes);
    }
  }
}

void ControlServer::Wait() {
  // Closed links are erased only here, where no loop refers to them. From here to the end of this
  // function, links_[i] belongs to polled[i + 2]; new links are added after the loop.
  std::erase_if(links_, [](const auto& link) { return link->closed(); });
  const bool accepting = accept_again_.expired();
  std::vector<pollfd> polled = {{wake_.get(), POLLIN, 0},
                                {accepting ? listener_.fd() : -1, POLLIN, 0}};
  for (const auto& link : links_) {
    const int events = link->flushed() ? POLLIN : POLLIN | POLLOUT;
    polled.push_back({link->fd(), static_cast<short>(events), 0});
  }
  // Polls again after a signal, because DropSilent() must not run before all arrived data is read.
  int ready = 0;
  do {
    ready = ::poll(polled.data(), polled.size(), NextTimeout().poll_timeout_ms());
  } while (ready < 0 && errno == EINTR);
  if (ready < 0) ThrowErrno(errno, "cannot wait for the members' connections");
  eventfd_t wakes = 0;
  ::eventfd_read(wake_.get(), &wakes);
  for (size_t i = 2; i < polled.size(); ++i) {
    if (polled[i].revents != 0) Serve(*links_[i - 2], polled[i].revents);
  }
  if (polled[1].revents != 0) Accept();
}

Deadline ControlServer::NextTimeout() {
  Deadline next = Deadline::Earlier(Deadline::Earlier(next_beat_, stop_by_), handler_.NextAlarm());
  if (!accept_again_.expired()) next = Deadline::Earlier(next, accept_again_);
  for (const auto& link : links_) {
    next = Deadline::Earlier(next, link->is_member() ? link->silent_after() : link->handshake());
  }
  return next;
}

void ControlServer::Accept() {
  if (!DropOldestIfFull()) return;
  auto link = AcceptLink(listener_, options_.handshake_timeout_s, &accept_again_);
  if (link == nullptr) return;
  try {
    link->Greet();
    links_.push_back(std::move(link));
  } catch (const Error& error) {
    Drop(*link, error.message());
  }
}

bool ControlServer::DropOldestIfFull() {
  const auto is_unauthenticated = [](const auto& link) {
    return !link->is_member() && !link->closed();
  };
  if (std::count_if(links_.begin(), links_.end(), is_unauthenticated) <
      kMaxUnauthenticated + options_.world) {
    return true;
  }
  Link& oldest = **std::find_if(links_.begin(), links_.end(), is_unauthenticated);
  accept_again_ = oldest.replaceable();
  if (!accept_again_.expired()) return false;
  Count(&Refusals::slow);
  oldest.Close();
  return true;
}

void ControlServer::Serve(Link& link, short events) {
  try {
    if ((events & POLLOUT) != 0) link.Flush();
    if ((events & (POLLIN | POLLHUP | POLLERR)) == 0) return;
    const bool open = link.Receive();
    // Handles messages before the end of the stream, because a rank sends "done" or a failure
    // before it closes the connection.
    if (const auto claim = link.TakeClaim()) Admit(link, *claim);
    while (const auto frame = link.TakeFrame()) handler_.OnFrame(link.rank(), *frame);
    if (!open) Drop(link, kClosedWithoutDone);
  } catch (const Error& error) {
    const bool gone = error.code() == ErrorCode::kUnavailable;
    Drop(link,
         gone ? kClosedWithoutDone : fmt::format("broke the control protocol: {}", error.what()));
  } catch (const std::exception& error) {
    // An exception of Json, for example: a field is missing or has the wrong type.
    Drop(link, fmt::format("broke the control protocol: {}", error.what()));
  }
}

void ControlServer::Admit(Link& link, const std::string& claim) {
  Identity identity;
  try {
    identity = CheckClaim(credentials_, link.hello(), claim);
  } catch (const Error& error) {
    // Does not answer, so that a client without the token learns nothing, not even the generation.
    const bool forged = error.code() == ErrorCode::kPermissionDenied;
    Count(forged ? &Refusals::proof : &Refusals::malformed);
    return link.Close();
  }
  const Verdict verdict = Judge(identity);
  const bool accepted = verdict == Verdict::kAccepted;
  if (!accepted) {
    const bool other = verdict == Verdict::kOtherGeneration;
    Count(other ? &Refusals::generation : &Refusals::rank);
  }
  link.Send(MakeVerdict(credentials_, link.hello(), claim, verdict, options_.generation));
  if (!accepted) return link.Close();
  // Never reset: a lost rank cannot join again, because its peers have counted it as failed. After
  // a restart, the ranks join another generation.
  joined_[identity.rank] = true;
  link.SetRank(static_cast<int>(identity.rank));
  link.SetSilenceTimeout(options_.heartbeat_timeout_s);
  try {
    link.Send(EncodeMessage(options_.welcome));
  } catch (const Error&) {
    handler_.OnJoin(link.rank(), link.peer());  // OnLost can then name its host
    throw;
  }
  handler_.OnJoin(link.rank(), link.peer());
}

Verdict ControlServer::Judge(Identity identity) const {
  if (identity.generation != options_.generation) return Verdict::kOtherGeneration;
  if (identity.rank >= joined_.size()) return Verdict::kUnknownRank;
  return joined_[identity.rank] ? Verdict::kRankTaken : Verdict::kAccepted;
}

void ControlServer::SendHeartbeats() {
  if (!next_beat_.expired()) return;
  next_beat_ = Deadline::After(options_.heartbeat_interval_s);
  const std::string beat = EncodeMessage({{"type", "heartbeat"}});
  for (const auto& link : links_) {
    if (link->is_member()) SendTo(*link, beat);
  }
}

void ControlServer::DropSilent() {
  for (const auto& link : links_) {
    if (link->closed()) continue;
    if (!link->is_member() && link->handshake().expired()) {
      Count(&Refusals::slow);
      link->Close();
    } else if (link->is_member() && link->silent_after().expired()) {
      const std::string reason =
          fmt::format("has been silent for {} s: it is frozen or its network is down",
                      options_.heartbeat_timeout_s);
      Drop(*link, reason, ErrorCode::kDeadlineExceeded);
    }
  }
}

void ControlServer::SendTo(Link& link, const std::string& bytes) {
  if (link.closed()) return;
  try {
    link.Send(bytes);
  } catch (const Error& error) {
    Drop(link, fmt::format("went away: {}", error.what()));
  }
}

void ControlServer::Drop(Link& link, const std::string& reason, ErrorCode code) {
  if (link.closed()) return;
  if (link.is_member()) {
    handler_.OnLost(link.rank(), code, reason);
  } else {
    Count(&Refusals::malformed);
  }
  link.Close();
}

void ControlServer::Count(int Refusals::*reason) {
  const std::lock_guard lock(mutex_);
  ++(refusals_.*reason);
}

}  // namespace hearth::rendezvous
