// hearth.native._core: the rows of a rank's dataset.
#include <nanobind/nanobind.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <string>
#include <vector>

#include "dataset_arrays.h"
#include "hearth/dataset/dataset_rows.h"
#include "hearth/dataset/same_columns.h"
#include "module.h"
#include "signal_handlers.h"

namespace nb = nanobind;
using namespace nb::literals;

namespace hearth::bindings {
namespace {

using dataset::DatasetRows;

nb::list Columns(DatasetRows& self) {
  // The pointer is valid as long as `self`, to which the caller holds a reference.
  const batch::BatchView* schema = WaitWithHandlers([&] { return self.WaitSchema(); });
  nb::list described;
  if (schema == nullptr) return described;
  for (const batch::ColumnView& column : schema->columns()) {
    described.append(
        nb::make_tuple(std::string(column.name()), dataset::TypeName(column), column.list_size()));
  }
  return described;
}

void ApplyAnnouncement(DatasetRows& self, int64_t partition, int64_t attempt, int fd,
                       uint64_t bytes, int64_t rows, bool complete, uint64_t hash) {
  self.ApplyAnnouncement({.partition = partition,
                          .attempt = attempt,
                          .file = Fd(fd),
                          .committed = {bytes, rows},
                          .complete = complete,
                          .hash = hash});
}

void DefineDatasetRows(nb::module_& m) {
  nb::class_<DatasetRows>(m, "DatasetRows",
                          R"(The rows of a rank's partitions, as they arrive. Thread-safe.

Waits raise TimeoutError after `timeout_s`, and HearthError with the reason of fail().)")
      .def(nb::init<std::vector<int64_t>, double>(), "owned"_a, "timeout_s"_a)
      .def("grow", &ApplyAnnouncement, "partition"_a, "attempt"_a, "fd"_a, "bytes"_a, "rows"_a,
           "complete"_a, "hash"_a = 0, ReleaseGil(),
           "Reports what an attempt's writer has committed. `fd`, in the attempt's first message "
           "and else -1, is owned by this object afterwards. `hash`: of all rows, if complete. "
           "Raises "
           "HearthError if the file is damaged or its rows differ from those already read.")
      .def("lose", &DatasetRows::AbandonAttempt, "partition"_a, "attempt"_a, ReleaseGil(),
           "An attempt ended early. Another attempt must have the rows already read.")
      .def("set_totals", &DatasetRows::SetTotals, "rows"_a, ReleaseGil(),
           "The number of rows of each partition of the dataset.")
      .def("fail", &DatasetRows::Fail, "reason"_a, ReleaseGil(), "Ends all waits.")
      .def(
          "rows_of_rank",
          [](DatasetRows& self) { return WaitWithHandlers([&] { return self.WaitRows(); }); },
          "The number of rows of this rank; waits until it is known.")
      .def(
          "totals",
          [](DatasetRows& self, double timeout_s) {
            return WaitWithHandlers([&] { return self.WaitTotals(timeout_s); });
          },
          "timeout_s"_a, "The row counts of set_totals(); waits for them.")
      .def(
          "hashes",
          [](DatasetRows& self) { return WaitWithHandlers([&] { return self.WaitHashes(); }); },
          "The hash of each owned partition, in ascending order; waits until all are complete.")
      .def("columns", &Columns,
           "(name, type, size of a fixed-size list or 0) of each column; waits for the first row. "
           "Empty if the rank has no rows.");
}

}  // namespace

void RegisterDataset(nb::module_& m) {
  DefinePartitionFiles(m);
  DefineDatasetRows(m);
  DefineSelectedRows(m);
  DefineEpochReader(m);
}

}  // namespace hearth::bindings
