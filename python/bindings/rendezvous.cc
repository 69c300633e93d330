// hearth.native._core: Coordinator, Member and new_token.
#include <nanobind/nanobind.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <condition_variable>
#include <deque>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "gil.h"
#include "hearth/base/hmac.h"
#include "hearth/rendezvous/coordinator.h"
#include "hearth/rendezvous/member.h"
#include "message_channel.h"
#include "module.h"
#include "python_json.h"

namespace nb = nanobind;
using namespace nb::literals;

namespace hearth::bindings {
namespace {

using rendezvous::Coordinator;
using rendezvous::CoordinatorOptions;
using rendezvous::Failure;
using rendezvous::Json;
using rendezvous::Member;
using rendezvous::MemberOptions;

Json ParseValue(const std::string& text) {
  Json value = Json::parse(text, nullptr, false);
  Require(!value.is_discarded(), ErrorCode::kInvalidArgument,
          "a value for the other ranks is not JSON: {}", text.substr(0, 80));
  return value;
}

// A rank's message that is not UTF-8 must still be readable.
std::string Dump(const Json& value) {
  return value.dump(-1, ' ', false, Json::error_handler_t::replace);
}

Json FailureJson(const Failure& failure) {
  Json json = failure.ToJson();
  json["error"] = failure.message;
  json["message"] = failure.Describe();
  return json;
}

nb::object FailureDict(const std::optional<Failure>& failure) {
  return failure ? ToPython(FailureJson(*failure)) : nb::none();
}

nb::list ToPythonList(const std::vector<Json>& values) {
  nb::list list;
  for (const Json& value : values) list.append(ToPython(value));
  return list;
}

void MakeCoordinator(Coordinator* self, int world, std::string token, uint32_t generation,
                     std::string bind_host, int bind_port, int bind_ports, std::string setting,
                     std::string advertise_host, double reserve_timeout_s,
                     double heartbeat_interval_s, double heartbeat_timeout_s) {
  CoordinatorOptions options;
  options.world = world;
  options.token = std::move(token);
  options.generation = generation;
  options.bind_host = std::move(bind_host);
  options.bind_ports = {bind_port, bind_ports, std::move(setting)};
  options.advertise_host = std::move(advertise_host);
  options.reserve_timeout_s = reserve_timeout_s;
  options.heartbeat_interval_s = heartbeat_interval_s;
  options.heartbeat_timeout_s = heartbeat_timeout_s;
  new (self) Coordinator(std::move(options));
}

void RegisterCoordinator(nb::module_& m) {
  nb::class_<Coordinator>(m, "Coordinator", R"(Rendezvous of the ranks of one attempt of a run.

Listens at once, on the first free one of `bind_ports` ports from `bind_port` on (OSError if none is
free; `setting` is the setting to name then). A dedicated thread does the work. The token is 64 hex
digits (new_token()).)")
      .def("__init__", &MakeCoordinator, nb::kw_only(), "world"_a, "token"_a, "generation"_a = 0,
           "bind_host"_a = "127.0.0.1", "bind_port"_a = 0, "bind_ports"_a = 1, "setting"_a = "",
           "advertise_host"_a = "", "reserve_timeout_s"_a = 60.0, "heartbeat_interval_s"_a = 1.0,
           "heartbeat_timeout_s"_a = 10.0)
      .def("host", &Coordinator::host, "The host for members to connect to.")
      .def("port", &Coordinator::port)
      .def(
          "wait_members",
          [](Coordinator& self, double timeout_s) {
            return ToPythonList(
                WithoutGil([&] { return self.WaitForReservations(Deadline::After(timeout_s)); }));
          },
          "timeout_s"_a,
          "Every rank's info, by rank. Raises TimeoutError naming the missing ranks, HearthError "
          "if a rank failed first.")
      .def(
          "next_event",
          [](Coordinator& self, double timeout_s) -> std::optional<std::pair<int, std::string>> {
            const auto event =
                WithoutGil([&] { return self.NextEvent(Deadline::After(timeout_s)); });
            if (!event) return std::nullopt;
            return std::pair(event->rank, Dump(event->value));
          },
          "timeout_s"_a,
          "(rank, JSON text) of the oldest event; None after timeout_s, and at once if none is "
          "left after close().")
      .def("take_dropped_log_lines", &Coordinator::TakeDroppedLogLines,
           "Log lines dropped in favour of newer ones since the last call.")
      .def(
          "broadcast",
          [](Coordinator& self, const std::string& json) { self.Broadcast(ParseValue(json)); },
          "json"_a, ReleaseGil(), "Sends a JSON text to every connected member.")
      .def("fail", &Coordinator::Fail, "rank"_a, "host"_a, "message"_a, ReleaseGil(),
           "Reports a failure to every rank (rank -1: of no single rank); only the first one "
           "counts.")
      .def(
          "failure", [](const Coordinator& self) { return FailureDict(self.failure()); },
          "The first failure or None: message (the whole sentence), rank, host, code, error (the "
          "rank's own text), lost, iteration, layer.")
      .def("finished", &Coordinator::finished, "Whether all ranks are done.")
      .def(
          "refused", [](const Coordinator& self) { return self.refusals().total(); },
          "Number of connections refused: wrong token, replay, other generation, garbage.")
      .def("close", &Coordinator::Close, ReleaseGil(), "Ends all connections. Idempotent.");
}

// Messages that a member received and no caller has taken yet.
class Inbox {
 public:
  void Put(const Json& value) {
    const std::lock_guard lock(mutex_);
    messages_.push_back(Dump(value));
    changed_.notify_all();
  }
  void End() {
    const std::lock_guard lock(mutex_);
    ended_ = true;
    changed_.notify_all();
  }
  std::optional<std::string> Next(Deadline deadline) {
    std::unique_lock lock(mutex_);
    changed_.wait_until(lock, deadline.at(), [this] { return ended_ || !messages_.empty(); });
    if (messages_.empty()) {
      Require(!ended_, ErrorCode::kUnavailable, "the connection to the coordinator has ended");
      return std::nullopt;
    }
    std::string message = std::move(messages_.front());
    messages_.pop_front();
    return message;
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::string> messages_;
  bool ended_ = false;
};

// A member that queues its messages in an inbox, so that its thread does not need the GIL. Its
// callbacks share ownership of the inbox, because they may run until the base class is destroyed.
class PythonMember : public Member {
 public:
  explicit PythonMember(MemberOptions options)
      : PythonMember(std::move(options), std::make_shared<Inbox>()) {}
  Inbox& inbox() { return *inbox_; }

 private:
  PythonMember(MemberOptions options, std::shared_ptr<Inbox> inbox)
      : Member(Deliver(std::move(options), inbox)),
        inbox_(std::move(inbox)),
        subscription_(OnFailure([to = inbox_](const Failure& failure) {
          to->Put({{"failure", FailureJson(failure)}});
        })) {}

  static MemberOptions Deliver(MemberOptions options, const std::shared_ptr<Inbox>& inbox) {
    options.on_message = [inbox](const Json& value) { inbox->Put(value); };
    options.on_end = [inbox] { inbox->End(); };
    return options;
  }

  std::shared_ptr<Inbox> inbox_;
  rendezvous::FailureWatch::Subscription subscription_;
};

void MakeMember(PythonMember* self, std::string host, int port, std::string token,
                uint32_t generation, int rank, int world, std::string host_name,
                double connect_timeout_s) {
  MemberOptions options;
  options.host = std::move(host);
  options.port = port;
  options.token = std::move(token);
  options.generation = generation;
  options.rank = rank;
  options.world = world;
  options.host_name = std::move(host_name);
  options.connect_timeout_s = connect_timeout_s;
  new (self) PythonMember(std::move(options));
}

void RegisterMember(nb::module_& m) {
  // NOLINTNEXTLINE(bugprone-unused-raii): registers the class as a side effect
  nb::class_<Member>(m, "MemberBase", "Base type in the signatures of other bindings.");
  nb::class_<PythonMember, Member>(m, "Member", R"(One rank's connection to the coordinator.

Raises ConnectionError, TimeoutError or PermissionError if it cannot join. Waits raise
HearthError with the first failure of any rank.)")
      .def("__init__", &MakeMember, nb::kw_only(), "host"_a, "port"_a, "token"_a,
           "generation"_a = 0, "rank"_a, "world"_a, "host_name"_a = "localhost",
           "connect_timeout_s"_a = 30.0, ReleaseGil())
      .def(
          "reserve",
          [](PythonMember& self, const std::string& json) {
            return ToPythonList(WithoutGil([&] { return self.Reserve(ParseValue(json)); }));
          },
          "json"_a, "Waits for all ranks; every rank's info, by rank.")
      .def(
          "all_gather",
          [](PythonMember& self, const std::string& name, const std::string& json,
             double timeout_s) {
            return ToPythonList(WithoutGil([&] {
              return self.AllGather(name, ParseValue(json), Deadline::After(timeout_s));
            }));
          },
          "name"_a, "json"_a, "timeout_s"_a,
          "Exchanges values; returns every rank's value, by rank.")
      .def(
          "send_event",
          [](PythonMember& self, const std::string& json) { self.SendEvent(ParseValue(json)); },
          "json"_a, ReleaseGil())
      .def(
          "done", [](PythonMember& self, const std::string& json) { self.Done(ParseValue(json)); },
          "json"_a = "null", ReleaseGil())
      .def(
          "send_failure",
          [](PythonMember& self, const std::string& message, const std::string& code) {
            self.SendFailure({.code = ErrorCodeFromName(code), .message = message});
          },
          "message"_a, "code"_a = "internal", ReleaseGil(),
          "Fails this rank, and all others with it.")
      .def(
          "next_message",
          [](PythonMember& self, double timeout_s) {
            return WithoutGil([&] { return self.inbox().Next(Deadline::After(timeout_s)); });
          },
          "timeout_s"_a,
          "The oldest JSON text of Coordinator.broadcast(), or {\"failure\": ...} once any rank "
          "failed; None after timeout_s. Raises ConnectionError if the connection has ended.")
      .def("failure", [](PythonMember& self) { return FailureDict(self.failure()); });
}

}  // namespace

void RegisterRendezvous(nb::module_& m) {
  RegisterCoordinator(m);
  RegisterMember(m);
  DefineMessageChannel(m);
  m.def("new_token", &NewToken, "A fresh 256-bit secret as 64 hex digits.");
}

}  // namespace hearth::bindings
