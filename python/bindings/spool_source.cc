#include "spool_source.h"
#include "gil.h"

#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>

#include <array>
#include <cstddef>
#include <limits>
#include <memory>
#include <numeric>
#include <span>
#include <string>
#include <vector>

#include "hearth/dataset/spool/spool_source.h"

namespace nb = nanobind;
using namespace nb::literals;

namespace hearth::bindings {
namespace {

double SumOfLines(const char* bytes, size_t count) {
  uint64_t sum = 0;
  // Reads one byte of each cache line, so that the measurement includes reading the rows from
  // memory.
  for (size_t i = 0; i < count; i += 64) sum += static_cast<uint8_t>(bytes[i]);
  return static_cast<double>(sum);
}

// Uses separate lanes, because a single running sum would serialise the additions.
double SumOf(const std::vector<float>& values) {
  std::array<double, 8> lanes = {};
  size_t at = 0;
  for (; at + lanes.size() <= values.size(); at += lanes.size()) {
    for (size_t lane = 0; lane < lanes.size(); ++lane) lanes[lane] += values[at + lane];
  }
  return std::accumulate(values.begin() + static_cast<std::ptrdiff_t>(at), values.end(),
                         std::accumulate(lanes.begin(), lanes.end(), 0.0));
}

// Mimics a data layer: copies lists of numbers to contiguous memory, as for a top, and reads
// strings and binaries (encoded images) in place.
class Gatherer {
 public:
  double Gather(const dataset::Minibatch& minibatch, const std::string& name) {
    double sum = 0;
    floats_.clear();
    for (const dataset::Minibatch::Row& row : minibatch.rows) {
      const batch::ColumnView& column = row.batch->column(name);
      if (IsBytes(column.type())) {
        const std::string_view value = column.Bytes(row.index);
        sum += SumOfLines(value.data(), value.size());
      } else {
        const std::span<const float> values = column.FloatList(row.index, &scratch_);
        floats_.insert(floats_.end(), values.begin(), values.end());
      }
    }
    return sum + SumOf(floats_);
  }

 private:
  std::vector<float> floats_;
  std::vector<float> scratch_;
};

struct PythonSpoolSource {
  std::shared_ptr<dataset::Spool> spool;
  dataset::SpoolSource source;
};

// Reads all minibatches of the epoch, then starts the next one.
std::pair<int64_t, double> DrainEpoch(PythonSpoolSource& spooled, int64_t batch_size,
                                      const std::string& column) {
  dataset::SpoolSource& source = spooled.source;
  int64_t rows = 0;
  double sum = 0;
  Gatherer gatherer;
  dataset::Minibatch minibatch;
  while (source.Next(batch_size, &minibatch) > 0) {
    rows += minibatch.size();
    sum += gatherer.Gather(minibatch, column);
  }
  source.NextEpoch();
  return {rows, sum};
}

}  // namespace

std::pair<int64_t, int64_t> DrainRing(ring::RingReader& ring, double timeout_s) {
  int64_t rows = 0;
  int64_t bytes = 0;
  volatile double touched = 0;  // so that the reads are not optimized away
  for (;;) {
    const ring::RingEntry entry = ring.Next(Deadline::After(timeout_s));
    if (entry.kind != ring::EntryKind::kBatch) return {rows, bytes};
    rows += batch::BatchView(entry.image).rows();
    bytes += static_cast<int64_t>(entry.image.size());
    touched =
        touched + SumOfLines(reinterpret_cast<const char*>(entry.image.data()), entry.image.size());
  }
}

void DefineSpoolSource(nb::module_& m) {
  nb::class_<PythonSpoolSource>(m, "SpoolSource",
                                "Reads the rows of a ring as a trainer does. For measurements.")
      .def(
          "__init__",
          [](PythonSpoolSource* self, int ring_fd, int signal_fd, const std::string& directory,
             bool shuffle, uint64_t seed) {
            auto spool = std::make_shared<dataset::Spool>(ring::RingEnd{Fd(ring_fd), Fd(signal_fd)},
                                                          dataset::SpoolOptions{directory, 600.0});
            new (self) PythonSpoolSource{spool, dataset::SpoolSource(spool, {shuffle, seed})};
          },
          "ring_fd"_a, "signal_fd"_a, "directory"_a = "/tmp", "shuffle"_a = true, "seed"_a = 0)
      .def("drain_epoch", DrainEpoch, "batch_size"_a, "column"_a, ReleaseGil(),
           "Reads the epoch's minibatches, accesses the column as a data layer does (numbers "
           "copied into one buffer, bytes in place, each cache line touched), and starts the next "
           "epoch. Returns (rows, sum of the numbers or of each line's first byte).")
      .def(
          "digest",
          [](PythonSpoolSource& self) {
            const auto digest = self.spool->DigestOf(std::numeric_limits<int64_t>::max());
            return std::pair(digest.rows, digest.hash);
          },
          ReleaseGil(), "(rows, hash) of the whole stream, as in a snapshot.");
}

}  // namespace hearth::bindings
