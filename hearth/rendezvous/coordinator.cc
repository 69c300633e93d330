#include "hearth/rendezvous/coordinator.h"

#include <utility>

#include "hearth/base/error.h"

namespace hearth::rendezvous {
namespace {

// Maximum number of queued log lines, which limits memory if the driver reads no events. There are
// few events of other kinds.
constexpr size_t kMaxLogLines = 4096;

CoordinatorOptions Checked(CoordinatorOptions options) {
  Require(options.world >= 1, ErrorCode::kInvalidArgument,
          "a cluster needs at least one rank, but world is {}", options.world);
  Require(options.heartbeat_interval_s > 0 &&
              options.heartbeat_interval_s < options.heartbeat_timeout_s,
          ErrorCode::kInvalidArgument,
          "the heartbeat interval ({} s) must be positive and below the timeout ({} s)",
          options.heartbeat_interval_s, options.heartbeat_timeout_s);
  if (options.advertise_host.empty()) options.advertise_host = options.bind_host;
  return options;
}

ControlServerOptions ServerOptions(const CoordinatorOptions& options) {
  auto server = static_cast<const ControlServerOptions&>(options);
  server.welcome = {{"type", "welcome"},
                    {"world", options.world},
                    {"heartbeat_interval_s", options.heartbeat_interval_s},
                    {"heartbeat_timeout_s", options.heartbeat_timeout_s},
                    {"reserve_timeout_s", options.reserve_timeout_s}};
  return server;
}

}  // namespace

Coordinator::Coordinator(CoordinatorOptions options)
    : options_(Checked(std::move(options))),
      membership_(options_.world),
      peers_(static_cast<size_t>(options_.world)),
      events_(kMaxLogLines) {
  // Locked because the first callback may run before server_ is set; the callback then waits for
  // this lock.
  const std::lock_guard lock(mutex_);
  server_ = std::make_unique<ControlServer>(ServerOptions(options_),
                                            static_cast<ControlServer::Handler&>(*this));
}

Coordinator::~Coordinator() = default;

std::vector<Json> Coordinator::WaitForReservations(Deadline deadline) {
  std::unique_lock lock(mutex_);
  changed_.wait_until(lock, deadline.at(),
                      [this] { return membership_.complete() || failure_ || closed_; });
  if (failure_) ThrowFailure(*failure_);
  Require(!closed_, ErrorCode::kAborted, "the coordinator was closed");
  Require(membership_.complete(), ErrorCode::kDeadlineExceeded, "{}",
          membership_.DescribeReservation());
  return membership_.Infos();
}

std::optional<Event> Coordinator::NextEvent(Deadline deadline) {
  std::unique_lock lock(mutex_);
  changed_.wait_until(lock, deadline.at(),
                      [this] { return !events_.empty() || closed_ || unreported_failure_; });
  // Events that arrived before the failure are delivered first.
  if (events_.empty()) unreported_failure_ = false;
  return events_.Take();
}

int64_t Coordinator::TakeDroppedLogLines() {
  const std::lock_guard lock(mutex_);
  return events_.TakeDropped();
}

void Coordinator::Broadcast(const Json& value) {
  server_->Send(ControlServer::kAllRanks, {{"type", "message"}, {"value", value}});
}

void Coordinator::Fail(int rank, const std::string& host, const std::string& message) {
  const std::lock_guard lock(mutex_);
  SetFailure({.rank = rank, .host = host, .code = ErrorCode::kAborted, .message = message});
}

std::optional<Failure> Coordinator::failure() const {
  const std::lock_guard lock(mutex_);
  return failure_;
}

bool Coordinator::finished() const {
  const std::lock_guard lock(mutex_);
  return done_ == options_.world;
}

void Coordinator::Close() {
  {
    const std::lock_guard lock(mutex_);
    closed_ = true;
    changed_.notify_all();
  }
  // Stop() is called without the lock, because the service thread may need the lock to finish.
  server_->Stop();
}

void Coordinator::OnJoin(int rank, const std::string& peer) {
  const std::lock_guard lock(mutex_);
  peers_[static_cast<size_t>(rank)] = peer;
  // Repeats a failure that was sent to all ranks before this rank had connected.
  if (failure_) server_->Send(rank, {{"type", "failure"}, {"failure", failure_->ToJson()}});
}

void Coordinator::OnFrame(int rank, const Json& frame) {
  // If a field is missing or has the wrong type, Json throws, and the server drops the member.
  const auto type = frame.at("type").get<std::string>();
  if (type == "heartbeat") return;
  const std::lock_guard lock(mutex_);
  // After a failure no reservation or gather completes: every rank has been sent the failure
  // instead of an answer.
  if (failure_ && (type == "reserve" || type == "gather")) return;
  if (type == "reserve") {
    OnReserve(rank, frame);
  } else if (type == "gather") {
    OnGather(rank, frame);
  } else if (type == "came") {
    step_tracker_.Record({.group = frame.at("group").get<std::string>(),
                          .rank = frame.at("rank").get<int>(),
                          .world = frame.at("world").get<int>(),
                          .step = frame.at("step").get<uint64_t>()});
  } else if (type == "event") {
    events_.AddEvent({rank, frame.at("value")});
  } else if (type == "log") {
    events_.AddLogLine({rank, frame.at("value")});
  } else if (type == "done") {
    // A repeated "done" is counted once.
    if (!membership_.done(rank)) ++done_;
    membership_.SetDone(rank);
    events_.AddEvent({rank, frame.at("value")});
  } else if (type == "failure") {
    Failure failure = Failure::FromJson(frame.at("failure"));
    // Overrides the rank in the message, because only the connection's rank is authenticated.
    failure.rank = rank;
    OnFailure(std::move(failure));
  } else {
    Require(OnRequest(rank, type, frame), ErrorCode::kInvalidArgument,
            "the message type '{}' is unknown", type);
  }
  changed_.notify_all();
}

bool Coordinator::OnRequest(int rank, const std::string& type, const Json& frame) {
  if (type != "missing" && type != "absent") return false;
  const auto name = frame.at("name").get<std::string>();
  const Json ranks = type == "missing"
                         ? Json(membership_.DescribeMissing(name))
                         : Json(step_tracker_.RanksBehind(frame.at("group").get<std::string>(),
                                                          frame.at("step").get<uint64_t>()));
  server_->Send(rank, {{"type", type}, {"name", name}, {"ranks", ranks}});
  return true;
}

void Coordinator::OnReserve(int rank, const Json& frame) {
  if (reserve_by_.at() == Deadline::Never().at()) {
    reserve_by_ = Deadline::After(options_.reserve_timeout_s);
  }
  if (!membership_.Reserve(rank, frame.at("host").get<std::string>(), frame.at("info"))) return;
  reserve_by_ = Deadline::Never();
  server_->Send(ControlServer::kAllRanks,
                {{"type", "membership"}, {"members", membership_.Infos()}});
}

void Coordinator::OnGather(int rank, const Json& frame) {
  const auto name = frame.at("name").get<std::string>();
  auto values = membership_.Gather(rank, name, frame.at("value"));
  if (!values) return;
  server_->Send(ControlServer::kAllRanks,
                {{"type", "gathered"}, {"name", name}, {"values", std::move(*values)}});
}

void Coordinator::OnLost(int rank, ErrorCode code, const std::string& reason) {
  const std::lock_guard lock(mutex_);
  // A rank may leave once it is done.
  if (membership_.done(rank)) return;
  SetFailure({.rank = rank, .host = HostOf(rank), .code = code, .message = reason, .lost = true});
}

Deadline Coordinator::NextAlarm() {
  const std::lock_guard lock(mutex_);
  if (failure_) return Deadline::Never();
  return Deadline::Earlier(cause_by_, reserve_by_);
}

void Coordinator::OnAlarm() {
  const std::lock_guard lock(mutex_);
  if (cause_by_.expired()) return SetFailure(*consequence_);
  SetFailure({.code = ErrorCode::kDeadlineExceeded,
              .message = fmt::format("within {} s, {}", options_.reserve_timeout_s,
                                     membership_.DescribeReservation())});
}

// A rank may notice that another rank left before this thread has read that rank's failure or
// noticed its loss. Therefore a consequence waits for its cause, which is known after
// heartbeat_timeout_s at the latest. If none is known by then, the first consequence is reported as
// the failure.
void Coordinator::OnFailure(Failure failure) {
  if (!failure.consequence) return SetFailure(std::move(failure));
  consequence_ranks_.insert(failure.rank);
  if (!consequence_) {
    consequence_ = std::move(failure);
    cause_by_ = Deadline::After(options_.heartbeat_timeout_s);
  }
  if (AllReportConsequences()) SetFailure(*consequence_);
}

bool Coordinator::AllReportConsequences() const {
  for (int rank = 0; rank < options_.world; ++rank) {
    const bool runs = !peers_[static_cast<size_t>(rank)].empty() && !membership_.done(rank);
    if (runs && !consequence_ranks_.contains(rank)) return false;
  }
  return true;
}

void Coordinator::SetFailure(Failure failure) {
  // Keeps the first failure, because later ones are mostly its consequences.
  if (failure_) return;
  if (failure.rank >= 0 && failure.host.empty()) failure.host = HostOf(failure.rank);
  failure_ = std::move(failure);
  unreported_failure_ = true;
  server_->Send(ControlServer::kAllRanks, {{"type", "failure"}, {"failure", failure_->ToJson()}});
  changed_.notify_all();
}

const std::string& Coordinator::HostOf(int rank) const {
  const std::string& host = membership_.host(rank);
  return host.empty() ? peers_[static_cast<size_t>(rank)] : host;
}

}  // namespace hearth::rendezvous
