// hearth.native._core: partition files and the rows of a rank's dataset.
#include <fmt/format.h>
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <memory>
#include <mutex>
#include <numeric>
#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "batch.h"
#include "dataset_arrays.h"
#include "gil.h"
#include "hearth/base/error.h"
#include "hearth/dataset/dataset_rows.h"
#include "hearth/dataset/epoch_reader.h"
#include "hearth/dataset/partition_rows.h"
#include "hearth/dataset/partition_stream.h"
#include "hearth/dataset/partition_writer.h"
#include "hearth/dataset/same_columns.h"
#include "module.h"
#include "new_array.h"
#include "signal_handlers.h"

namespace nb = nanobind;
using namespace nb::literals;

namespace hearth::bindings {
namespace {

using dataset::Committed;
using dataset::DatasetRows;
using dataset::EpochOrder;
using dataset::EpochReader;
using dataset::PartitionSender;
using dataset::PartitionWriter;

// Serialises the calls of Python's threads. Locks the mutex without the GIL.
template <typename T>
class OneAtATime {
 public:
  template <typename... Args>
  explicit OneAtATime(Args&&... args) : value_(std::forward<Args>(args)...) {}
  OneAtATime(OneAtATime&&) = delete;

  template <typename Call>
  auto With(Call call) {
    const std::lock_guard lock(mutex_);
    return call(value_);
  }

 private:
  std::mutex mutex_;
  T value_;
};

using GuardedWriter = OneAtATime<PartitionWriter>;

template <typename Writer>
std::pair<uint64_t, int64_t> WriteRows(Writer& writer, nb::handle rows) {
  const ArrowBatch batch(rows);
  const Committed committed = WaitWithHandlers([&] {
    return writer.With([&](auto& to) { return to.Write(batch.schema(), batch.array()); });
  });
  return {committed.bytes, committed.rows};
}

template <typename Writer>
uint64_t HashOf(Writer& writer) {
  return WithoutGil([&] { return writer.With([](auto& to) { return to.hash(); }); });
}

void DefinePartitionWriter(nb::module_& m) {
  nb::class_<GuardedWriter>(
      m, "PartitionWriter",
      "Appends rows to the file of a partition, taking ownership of its descriptor "
      "over.")
      .def(
          "__init__", [](GuardedWriter* self, int fd) { new (self) GuardedWriter(Fd(fd)); }, "fd"_a)
      .def("write", &WriteRows<GuardedWriter>, "batch"_a,
           "Appends the rows of anything with __arrow_c_array__; returns (bytes, rows) of the file "
           "that readers may now use. Raises ValueError for an unsupported column type, "
           "OSError if the disk is full.")
      .def_prop_ro("hash", &HashOf<GuardedWriter>, "The hash of all rows so far.")
      .def(
          "close",
          [](GuardedWriter& self) { self.With([](PartitionWriter& writer) { writer.Close(); }); },
          ReleaseGil());
}

using GuardedSender = OneAtATime<PartitionSender>;

// Connection on a duplicate of the descriptor; Python keeps the original.
Connection OnDuplicate(int fd) {
  return Connection(Duplicate(fd), "the other end of a partition's connection");
}

constexpr double kStreamTimeout = 3600;  // default, in seconds

void DefinePartitionSender(nb::module_& m) {
  nb::class_<GuardedSender>(m, "PartitionSender",
                            "Sends the rows of a partition over a connected socket, whose "
                            "descriptor it duplicates, to receive_partition().")
      .def(
          "__init__",
          [](GuardedSender* self, int fd, double timeout_s) {
            new (self) GuardedSender(OnDuplicate(fd), timeout_s);
          },
          "fd"_a, "timeout_s"_a = kStreamTimeout)
      .def("write", &WriteRows<GuardedSender>, "batch"_a,
           "Sends the rows of anything with __arrow_c_array__; returns (bytes, rows) sent so far. "
           "Raises ValueError for an unsupported column type, ConnectionError if the "
           "receiver has closed the connection, TimeoutError if it reads nothing.")
      .def(
          "end",
          [](GuardedSender& self) {
            WaitWithHandlers([&] { self.With([](PartitionSender& to) { to.End(); }); });
          },
          "Sends the end after the last row.")
      .def_prop_ro("hash", &HashOf<GuardedSender>, "The hash of all rows so far.");
}

std::tuple<uint64_t, int64_t, uint64_t> ReceiveFrom(int socket_fd, int file_fd,
                                                    nb::object on_commit, double timeout_s) {
  Connection connection = OnDuplicate(socket_fd);
  Fd file = Duplicate(file_fd);
  const auto received = WaitWithHandlers([&] {
    return dataset::ReceivePartition(connection, std::move(file), timeout_s,
                                     [&](const Committed& committed) {
                                       const AcquiredGil acquired;
                                       on_commit(committed.bytes, committed.rows);
                                     });
  });
  return {received.committed.bytes, received.committed.rows, received.hash};
}

void DefineReceivePartition(nb::module_& m) {
  m.def("receive_partition", &ReceiveFrom, "socket_fd"_a, "file_fd"_a, "on_commit"_a,
        "timeout_s"_a = kStreamTimeout,
        "Receives a partition from a PartitionSender into an empty file, calling "
        "on_commit(bytes, rows) for each commit; returns (bytes, rows, hash) at its end. Both "
        "descriptors remain the caller's. Raises ConnectionError if the connection ends early, "
        "TimeoutError if nothing arrives, HearthError for damaged rows.");
}

uint64_t PartitionHash(int64_t partition, int fd, uint64_t bytes, int64_t rows) {
  Fd file = Duplicate(fd);
  return WithoutGil([&] { return dataset::HashOfFile(partition, std::move(file), {bytes, rows}); });
}

nb::list Columns(DatasetRows& self) {
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

// Reads in the order of consecutive epochs.
class GuardedReader {
 public:
  GuardedReader(std::shared_ptr<DatasetRows> rows, uint64_t seed, const std::string& mode)
      : rows_(rows), reader_(std::move(rows), seed, dataset::ShuffleOf(mode)) {}

  void Start(int64_t epoch, nb::handle remaining, std::optional<uint64_t> order_seed) {
    std::optional<EpochReader::Rest> rest;
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

void DefineEpochReader(nb::module_& m) {
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

void RegisterDataset(nb::module_& m) {
  DefinePartitionWriter(m);
  DefinePartitionSender(m);
  DefineReceivePartition(m);
  m.def("partition_hash", &PartitionHash, "partition"_a, "fd"_a, "bytes"_a, "rows"_a,
        "The hash of the rows in a complete partition file, which it reads; the descriptor remains "
        "the caller's. Raises HearthError if the file is damaged or has another number of rows.");
  DefineDatasetRows(m);
  DefineSelectedRows(m);
  DefineEpochReader(m);
  m.def("consumed_rows", &ConsumedRows, "counts"_a, "seed"_a, "epoch"_a, "mode"_a, "count"_a,
        "Marks the rows of consecutive partitions, with these row counts, at an epoch's first "
        "`count` positions: an array of bool.");
}

}  // namespace hearth::bindings
