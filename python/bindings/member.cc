// hearth.native._core.Member.
#include <nanobind/nanobind.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>

#include <condition_variable>
#include <deque>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>

#include "gil.h"
#include "hearth/rendezvous/member.h"
#include "rendezvous_values.h"

namespace nb = nanobind;
using namespace nb::literals;

namespace hearth::bindings {
namespace {

using rendezvous::Failure;
using rendezvous::Json;
using rendezvous::Member;
using rendezvous::MemberOptions;

// Messages that a member has received and that no caller has read yet.
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
    // Messages that arrived before the end are delivered before the error.
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

// A member that queues its messages in an inbox, so that the member's thread does not need the GIL.
// The callbacks share ownership of the inbox, because they may run until the base class is
// destroyed.
class PythonMember : public Member {
 public:
  explicit PythonMember(MemberOptions options)
      : PythonMember(std::move(options), std::make_shared<Inbox>()) {}
  Inbox& inbox() { return *inbox_; }

 private:
  PythonMember(MemberOptions options, std::shared_ptr<Inbox> inbox)
      : Member(Deliver(std::move(options), inbox)),
        inbox_(std::move(inbox)),
        // subscription_ is initialized last, because the callback may be called at once.
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

}  // namespace

void DefineMember(nb::module_& m) {
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

}  // namespace hearth::bindings
