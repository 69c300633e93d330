// hearth.native._core: FeedLedger.
#include <nanobind/nanobind.h>
#include <nanobind/stl/set.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <string>
#include <vector>

#include "gil.h"
#include "hearth/feed/ledger.h"
#include "module.h"

namespace nb = nanobind;
using namespace nb::literals;

namespace hearth::bindings {

using feed::Ledger;

void RegisterPartitionLedger(nb::module_& m) {
  nb::class_<Ledger>(m, "FeedLedger",
                     "Driver-side state of feed jobs: which attempt sends which partition, rows "
                     "taken, rows safe. Thread-safe.")
      .def(nb::init<>())
      .def("open", &Ledger::Open, "feed"_a, ReleaseGil(),
           "Allows attempts of this job to send rows.")
      .def("close", &Ledger::Close, "feed"_a, ReleaseGil(),
           "Removes the job; rejects attempts that arrive later.")
      .def(
          "note",
          [](Ledger& ledger, int rank, const std::string& event) {
            std::vector<std::string> messages;
            for (const auto& message :
                 ledger.Note(rank, Ledger::Json::parse(event, nullptr, false)))
              messages.push_back(message.dump());
            return messages;
          },
          "rank"_a, "event"_a, ReleaseGil(),
          "Applies an event of a feed from a node (JSON text); returns messages (JSON texts) "
          "for all nodes. Raises ValueError for an invalid event.")
      .def("taken", &Ledger::Taken, "feed"_a, ReleaseGil(),
           "Rows of the job that programs have taken, possibly slightly out of date.")
      .def("safe", &Ledger::Safe, "feed"_a, ReleaseGil(),
           "Partitions of the job whose rows are safe.")
      .def("unfinished", &Ledger::Unfinished, "feed"_a, ReleaseGil(),
           "Partitions of the job that an attempt has started to send and none has finished.")
      .def(
          "start_again", &Ledger::Restart, ReleaseGil(),
          "Resets for new nodes: partitions that are not safe are sent again from their first row; "
          "if a safe one is sent again, its rows are only compared.");
}

}  // namespace hearth::bindings
