// hearth.native._core: FeedLedger.
#include <nanobind/nanobind.h>
#include <nanobind/stl/set.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <string>
#include <vector>

#include "gil.h"
#include "hearth/partitions/ledger.h"
#include "module.h"

namespace nb = nanobind;
using namespace nb::literals;

namespace hearth::bindings {

using partitions::Ledger;

void RegisterPartitionLedger(nb::module_& m) {
  nb::class_<Ledger>(m, "FeedLedger",
                     "What a driver knows about its feed jobs: who sends which partition, what was "
                     "taken, what is safe. Any thread may use it.")
      .def(nb::init<>())
      .def("open", &Ledger::Open, "feed"_a, ReleaseGil(),
           "From now on attempts of this job may send rows.")
      .def("close", &Ledger::Close, "feed"_a, ReleaseGil(),
           "Forgets the job; attempts that come late are refused.")
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
          "Takes the JSON text of an event of a feed from a node; returns texts that all nodes are "
          "to be told. Raises ValueError for one that is not understood.")
      .def("taken", &Ledger::Taken, "feed"_a, ReleaseGil(),
           "Rows of the job that programs have taken, as of a moment ago.")
      .def("safe", &Ledger::Safe, "feed"_a, ReleaseGil(),
           "The partitions of the job whose rows are safe.")
      .def("unfinished", &Ledger::Unfinished, "feed"_a, ReleaseGil(),
           "The partitions of the job that an attempt has begun to send and none has finished.")
      .def("start_again", &Ledger::StartAgain, ReleaseGil(),
           "All nodes are new: partitions that are not safe are sent again from their first row; "
           "if one that is safe is sent again, its rows are only compared.");
}

}  // namespace hearth::bindings
