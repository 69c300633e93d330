// hearth.native._core: partition files, and their rows sent over connections.
#include <nanobind/nanobind.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/tuple.h>

#include <tuple>
#include <utility>

#include "batch.h"
#include "dataset_arrays.h"
#include "gil.h"
#include "hearth/dataset/partition_rows.h"
#include "hearth/dataset/partition_stream.h"
#include "hearth/dataset/partition_writer.h"
#include "one_at_a_time.h"
#include "signal_handlers.h"

namespace nb = nanobind;
using namespace nb::literals;

namespace hearth::bindings {
namespace {

using dataset::Committed;
using dataset::PartitionSender;
using dataset::PartitionWriter;

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

// Returns a connection on a duplicate of the descriptor, because Python keeps the original.
Connection OnDuplicate(int fd) {
  return Connection(Duplicate(fd), "the other end of a partition's connection");
}

constexpr double kStreamTimeout = 3600;  // default in seconds

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
  // The descriptor is duplicated, because HashOfFile() closes its descriptor and Python keeps the
  // original.
  Fd file = Duplicate(fd);
  return WithoutGil([&] { return dataset::HashOfFile(partition, std::move(file), {bytes, rows}); });
}

}  // namespace

void DefinePartitionFiles(nb::module_& m) {
  DefinePartitionWriter(m);
  DefinePartitionSender(m);
  DefineReceivePartition(m);
  m.def("partition_hash", &PartitionHash, "partition"_a, "fd"_a, "bytes"_a, "rows"_a,
        "The hash of the rows in a complete partition file, which it reads; the descriptor remains "
        "the caller's. Raises HearthError if the file is damaged or has another number of rows.");
}

}  // namespace hearth::bindings
