// hearth.native._core: the rows of a dataset in the order of an epoch.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <memory>
#include <numeric>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "dataset_arrays.h"
#include "gil.h"
#include "hearth/base/error.h"
#include "hearth/dataset/dataset_rows.h"
#include "hearth/dataset/epoch_reader.h"
#include "new_array.h"
#include "one_at_a_time.h"
#include "signal_handlers.h"

namespace nb = nanobind;
using namespace nb::literals;

namespace hearth::bindings {
namespace {

using dataset::DatasetRows;
using dataset::EpochOrder;
using dataset::EpochReader;

std::optional<std::vector<int64_t>> IndicesOf(nb::handle array) {
  if (array.is_none()) return std::nullopt;
  const nb::module_ numpy = nb::module_::import_("numpy");
  const nb::object given = numpy.attr("asarray")(array);
  const auto kind = nb::cast<std::string>(given.attr("dtype").attr("kind"));
  Require(kind == "i" || kind == "u" || nb::cast<size_t>(given.attr("size")) == 0,
          ErrorCode::kInvalidArgument, "indices of rows must be integers");
  using Array = nb::ndarray<const int64_t, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
  const auto indices = nb::cast<Array>(numpy.attr("ascontiguousarray")(given, "int64"));
  return std::vector<int64_t>(indices.data(), indices.data() + indices.size());
}

// Reads rows in the order of consecutive epochs. Thread-safe.
class GuardedReader {
 public:
  GuardedReader(std::shared_ptr<DatasetRows> rows, uint64_t seed, const std::string& mode)
      : rows_(rows), reader_(std::move(rows), seed, dataset::ShuffleOf(mode)) {}

  void Start(int64_t epoch, nb::handle remaining, std::optional<uint64_t> order_seed) {
    std::optional<EpochReader::Rest> rest;
    // `remaining` is converted before the wait for the reader, because the conversion needs the
    // GIL.
    if (auto indices = IndicesOf(remaining)) rest = {std::move(*indices), order_seed};
    WithoutGil(
        [&] { reader_.With([&](EpochReader& reader) { reader.Start(epoch, std::move(rest)); }); });
  }
  int64_t Rows() {
    return WaitWithHandlers(
        [&] { return reader_.With([](EpochReader& reader) { return reader.WaitRows(); }); });
  }
  PythonRows Take(int64_t position, int64_t count, bool wrap) {
    return WaitWithHandlers([&] {
      return reader_.With([&](EpochReader& reader) {
        return PythonRows(reader.Select(position, count, wrap), rows_, reader.seed(),
                          reader.epoch());
      });
    });
  }

 private:
  std::shared_ptr<DatasetRows> rows_;
  OneAtATime<EpochReader> reader_;
};

void DefineGuardedReader(nb::module_& m) {
  nb::class_<GuardedReader>(m, "EpochReader", R"(Rows of a rank by their position in an epoch.

Args:
    rows: the DatasetRows; several readers may share one.
    seed: seed of the order.
    mode: 'none' (arrival order), 'window' (windows of up to 16,384 rows) or 'full'.)")
      .def(nb::init<std::shared_ptr<DatasetRows>, uint64_t, const std::string&>(), "rows"_a,
           "seed"_a, "mode"_a)
      .def("start", &GuardedReader::Start, "epoch"_a, "remaining"_a = nb::none(),
           "order_seed"_a = nb::none(),
           "Moves to an epoch, or to its remaining rows: `remaining` has their ascending indices, "
           "and their order depends on `order_seed` (None: the reader's "
           "seed). The rows' seeds remain those of the epoch.")
      .def("rows", &GuardedReader::Rows, "Rows of the rank in this epoch; waits for the number.")
      .def("take", &GuardedReader::Take, "position"_a, "count"_a, "wrap"_a = false,
           "Waits for the rows at `count` positions from `position` on. With `wrap` the epoch's "
           "first rows follow its last one, else there are fewer.");
}

nb::object ConsumedRows(const std::vector<int64_t>& counts, uint64_t seed, int64_t epoch,
                        const std::string& mode, int64_t count) {
  Require(std::all_of(counts.begin(), counts.end(), [](int64_t rows) { return rows >= 0; }),
          ErrorCode::kInvalidArgument, "a partition cannot have a negative number of rows");
  const int64_t rows = std::accumulate(counts.begin(), counts.end(), int64_t{0});
  const NewArray array({rows}, "bool");
  const EpochOrder order(dataset::ShuffleOf(mode), seed, epoch);
  WithoutGil([&] {
    auto* to = reinterpret_cast<bool*>(array.data());
    for (const bool consumed : dataset::RowsBefore(count, rows, order)) *to++ = consumed;
    return true;
  });
  return array.array();
}

}  // namespace

void DefineEpochReader(nb::module_& m) {
  DefineGuardedReader(m);
  m.def("consumed_rows", &ConsumedRows, "counts"_a, "seed"_a, "epoch"_a, "mode"_a, "count"_a,
        "Marks the rows of consecutive partitions, with these row counts, at an epoch's first "
        "`count` positions: an array of bool.");
}

}  // namespace hearth::bindings
