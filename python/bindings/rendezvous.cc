// hearth.native._core: Coordinator and new_token.
#include <nanobind/nanobind.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>

#include <optional>
#include <string>
#include <utility>

#include "gil.h"
#include "hearth/base/hmac.h"
#include "hearth/rendezvous/coordinator.h"
#include "message_channel.h"
#include "module.h"
#include "rendezvous_values.h"

namespace nb = nanobind;
using namespace nb::literals;

namespace hearth::bindings {
namespace {

using rendezvous::Coordinator;
using rendezvous::CoordinatorOptions;

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

}  // namespace

void RegisterRendezvous(nb::module_& m) {
  RegisterCoordinator(m);
  DefineMember(m);
  DefineMessageChannel(m);
  m.def("new_token", &NewToken, "A fresh 256-bit secret as 64 hex digits.");
}

}  // namespace hearth::bindings
