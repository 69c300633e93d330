#include "hearth/rendezvous/member.h"

#include <sys/socket.h>

#include <utility>

#include "hearth/base/log.h"
#include "hearth/rendezvous/handshake.h"
#include "hearth/rendezvous/rank_name.h"

namespace hearth::rendezvous {
namespace {

// Seconds to wait for the names of the missing ranks, which are requested after another wait has
// timed out.
constexpr double kRequestTimeout = 1.0;

Connection JoinCluster(const MemberOptions& options, Deadline deadline) {
  try {
    const Credentials credentials(options.token, kControlService);
    Connection connection = Connection::Connect(options.host, options.port, deadline);
    OfferHandshake(connection, credentials,
                   {options.generation, static_cast<uint32_t>(options.rank)}, deadline);
    return connection;
  } catch (const Error& error) {
    throw Error(
        error.code(),
        fmt::format("{} cannot join the cluster at {}", RankName(options.rank, options.host_name),
                    EndpointName(options.host, options.port)),
        error);
  }
}

}  // namespace

Member::Member(MemberOptions options)
    : options_(std::move(options)),
      connection_(JoinCluster(options_, Deadline::After(options_.connect_timeout_s))) {
  ReadWelcome(Deadline::After(options_.connect_timeout_s));
  thread_ = Thread("hearth-member", [this] { Run(); });
}

Member::~Member() {
  {
    const std::lock_guard lock(mutex_);
    may_leave_ = true;
  }
  const std::lock_guard lock(send_mutex_);
  leaving_ = true;
  // Shuts down only the sending direction: otherwise a heartbeat that arrived now would reset the
  // connection, and the coordinator would lose data that it has not read. The coordinator closes
  // the connection after reading the end of the stream, which ends the thread.
  ::shutdown(connection_.fd(), SHUT_WR);
}

void Member::ReadWelcome(Deadline deadline) {
  std::optional<Json> welcome;
  while (!(welcome = frames_.Next())) {
    char bytes[4096];
    const size_t got = connection_.ReadSome(bytes, sizeof(bytes), deadline);
    Require(got > 0, ErrorCode::kUnavailable, "the coordinator at {} closed the connection",
            connection_.peer());
    frames_.Append({bytes, got});
  }
  const int world = welcome->value("world", 0);
  Require(world == options_.world, ErrorCode::kInvalidArgument,
          "rank {} is configured for {} ranks, but the coordinator at {} for {}", options_.rank,
          options_.world, connection_.peer(), world);
  heartbeat_interval_s_ = welcome->value("heartbeat_interval_s", heartbeat_interval_s_);
  heartbeat_timeout_s_ = welcome->value("heartbeat_timeout_s", heartbeat_timeout_s_);
  reserve_timeout_s_ = welcome->value("reserve_timeout_s", reserve_timeout_s_);
}

std::vector<Json> Member::Reserve(const Json& info) {
  // A fallback only. The coordinator's limit, which starts with the first rank's reservation,
  // usually passes earlier, and its error names the missing ranks.
  const Deadline deadline = Deadline::After(reserve_timeout_s_ + heartbeat_timeout_s_);
  const auto infos = Request({{"type", "reserve"}, {"host", options_.host_name}, {"info", info}},
                             "membership", deadline);
  Require(infos.has_value(), ErrorCode::kDeadlineExceeded,
          "{} received no member list from the coordinator at {} within {} s",
          RankName(options_.rank, options_.host_name), connection_.peer(),
          reserve_timeout_s_ + heartbeat_timeout_s_);
  return infos->get<std::vector<Json>>();
}

std::vector<Json> Member::AllGather(const std::string& name, const Json& value, Deadline deadline) {
  const auto values =
      Request({{"type", "gather"}, {"name", name}, {"value", value}}, "gathered " + name, deadline);
  if (values) return values->get<std::vector<Json>>();
  const auto missing = Request({{"type", "missing"}, {"name", name}}, "missing " + name,
                               Deadline::After(kRequestTimeout));
  Throw(ErrorCode::kDeadlineExceeded, "{} timed out waiting for '{}': {} did not arrive",
        RankName(options_.rank, options_.host_name), name,
        missing ? missing->get<std::string>() : "other ranks");
}

void Member::ReportStep(const GroupStep& step) {
  Send({{"type", "came"},
        {"group", step.group},
        {"rank", step.rank},
        {"world", step.world},
        {"step", step.step}});
}

std::optional<std::vector<int>> Member::RanksBehind(const GroupStep& step) {
  // Each request has a unique name, because the answer to an earlier request may still arrive.
  const std::string name = fmt::format("{} {} {}", step.group, step.rank, ++requests_);
  const auto ranks =
      Request({{"type", "absent"}, {"name", name}, {"group", step.group}, {"step", step.step}},
              "absent " + name, Deadline::After(kRequestTimeout));
  if (!ranks) return std::nullopt;
  return ranks->get<std::vector<int>>();
}

void Member::SendEvent(const Json& value) { Send({{"type", "event"}, {"value", value}}); }

void Member::SendLogLine(const Json& value) { Send({{"type", "log"}, {"value", value}}); }

void Member::Done(const Json& value) {
  {
    const std::lock_guard lock(mutex_);
    // Set before the message is sent, because the coordinator may close the connection as soon as
    // it has read the message.
    may_leave_ = true;
  }
  try {
    Send({{"type", "done"}, {"value", value}});
  } catch (const Error& error) {  // the value is too large; the rank still counts as done
    log::Warning("rank {} is done, but its result cannot be sent: {}", options_.rank,
                 error.message());
    Send({{"type", "done"}, {"value", nullptr}});
  }
}

void Member::SendFailure(Failure failure) noexcept {
  try {
    failure.rank = options_.rank;
    failure.host = options_.host_name;
    Send({{"type", "failure"}, {"failure", failure.ToJson()}});
  } catch (const std::exception& problem) {
    log::Warning("the coordinator cannot be notified that rank {} failed: {}", options_.rank,
                 problem.what());
  }
}

// Sends the request and waits until the member's thread has received `answer`; empty at the
// deadline.
std::optional<Json> Member::Request(const Json& request, const std::string& answer,
                                    Deadline deadline) {
  // A request that is too large throws here, before an answer is expected.
  const std::string bytes = EncodeMessage(request);
  {
    const std::lock_guard lock(mutex_);
    // Added before the request is sent, because its answer may arrive at once.
    const bool fresh = answers_.try_emplace(answer).second;
    Require(fresh, ErrorCode::kInvalidArgument,
            "two threads of rank {} wait for '{}' at the same time", options_.rank, answer);
  }
  SendBytes(bytes);
  std::unique_lock lock(mutex_);
  std::optional<Json>& slot = answers_.at(answer);
  changed_.wait_until(lock, deadline.at(), [&] { return slot || watch_.failed(); });
  std::optional<Json> value = std::move(slot);
  answers_.erase(answer);
  // An answer that has arrived is returned even if a failure followed it.
  if (!value && watch_.failed()) ThrowFailure(*watch_.failure());
  return value;
}

void Member::Send(const Json& message) { SendBytes(EncodeMessage(message)); }

void Member::SendBytes(std::string_view bytes) {
  const std::lock_guard lock(send_mutex_);
  if (leaving_) return;
  try {
    // Each frame has its own deadline, because a large message may take longer than the heartbeat
    // timeout.
    for (size_t begin = 0; begin < bytes.size(); begin += kMaxFrameBytes) {
      connection_.Write(bytes.substr(begin, kMaxFrameBytes), Deadline::After(heartbeat_timeout_s_));
    }
  } catch (const Error&) {
    // The thread reads the remaining messages and the end of the connection, and reports a failure
    // that is more specific than this error.
    connection_.Shutdown();
  }
}

void Member::Run() {
  try {
    Deadline beat = Deadline::After(0);
    std::optional<Deadline> leave_by;
    silent_after_ = Deadline::After(heartbeat_timeout_s_);
    while (!leave_by || !leave_by->expired()) {
      // Reads the received frames first, because the constructor may have received some after the
      // welcome.
      while (const auto frame = frames_.Next()) Dispatch(*frame);
      if (leaving_ && !leave_by) leave_by = Deadline::After(heartbeat_timeout_s_);
      if (beat.expired()) {
        Send({{"type", "heartbeat"}});
        beat = Deadline::After(heartbeat_interval_s_);
      }
      Receive(Deadline::Earlier(beat, silent_after_));
    }
  } catch (const std::exception& error) {
    SetLost(error.what());
  }
  if (options_.on_end) options_.on_end();
}

void Member::Receive(Deadline deadline) {
  connection_.WaitReadable(deadline);
  char bytes[16384];
  const auto got = connection_.TryRead(bytes, sizeof(bytes));
  if (!got) {
    return Require(!silent_after_.expired(), ErrorCode::kDeadlineExceeded,
                   "it has been silent for {} s", heartbeat_timeout_s_);
  }
  Require(*got > 0, ErrorCode::kUnavailable, "it closed the connection");
  frames_.Append({bytes, *got});
  silent_after_ = Deadline::After(heartbeat_timeout_s_);
}

void Member::Dispatch(const Json& frame) {
  const auto type = frame.at("type").get<std::string>();
  std::string answer = type;
  const char* content = "values";
  if (type == "membership") {
    content = "members";
  } else if (type == "gathered") {
    answer = "gathered " + frame.at("name").get<std::string>();
  } else if (type == "missing" || type == "absent") {
    answer = type + " " + frame.at("name").get<std::string>();
    content = "ranks";
  } else if (type == "failure") {
    return SetFailure(Failure::FromJson(frame.at("failure")));
  } else if (type == "message") {
    if (options_.on_message) options_.on_message(frame.at("value"));
    return;
  } else {
    return;  // a heartbeat, which only resets the timeout, as all received bytes do
  }
  const std::lock_guard lock(mutex_);
  const auto waiting = answers_.find(answer);
  // A request whose wait has timed out is no longer in answers_.
  if (waiting != answers_.end()) waiting->second = frame.at(content);
  changed_.notify_all();
}

void Member::SetFailure(const Failure& failure) {
  watch_.Set(failure);
  const std::lock_guard lock(mutex_);
  changed_.notify_all();
}

void Member::SetLost(const std::string& reason) {
  {
    const std::lock_guard lock(mutex_);
    if (may_leave_) return;
  }
  SetFailure(
      {.host = options_.host,
       .code = ErrorCode::kUnavailable,
       .message = fmt::format("the coordinator at {} went away: {}", connection_.peer(), reason),
       .lost = true});
}

}  // namespace hearth::rendezvous
