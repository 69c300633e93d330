// hearth.native._core: rings between this process and a trainer, in both directions.
#include "hearth/ring/ring.h"

#include <nanobind/nanobind.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>

#include <memory>
#include <string>
#include <utility>

#include "batch.h"
#include "gil.h"
#include "hearth/base/error.h"
#include "hearth/ring/ring_reader.h"
#include "hearth/ring/ring_writer.h"
#include "module.h"
#include "spool_source.h"

namespace nb = nanobind;
using namespace nb::literals;

namespace hearth::bindings {
namespace {

// One side of a ring. In the process that created the ring, also holds the other side's descriptors
// until a child has inherited them.
template <typename Side>
class PythonRing {
 public:
  explicit PythonRing(ring::RingEnd own) : side_(std::move(own)) {}
  PythonRing(ring::RingEnd own, ring::RingEnd child)
      : side_(std::move(own)), child_(std::move(child)) {}

  static std::shared_ptr<PythonRing> Attach(int ring_fd, int signal_fd) {
    return std::make_shared<PythonRing>(ring::RingEnd{Fd(ring_fd), Fd(signal_fd)});
  }

  std::pair<int, int> Fds() const {
    Require(child_.memory.valid(), ErrorCode::kInvalidArgument,
            "this ring has no descriptors for a child: they were closed, or another process "
            "created it");
    return {child_.memory.get(), child_.signal.get()};
  }
  void CloseChildFds() { child_ = {}; }
  void Close() {
    child_ = {};
    side_.Close();
  }
  Side& side() { return side_; }

 private:
  Side side_;
  ring::RingEnd child_;
};

using PythonRingWriter = PythonRing<ring::RingWriter>;
using PythonRingReader = PythonRing<ring::RingReader>;

bool Write(PythonRingWriter& ring, nb::handle rows, double timeout_s) {
  // The chunks are written directly instead of through Arrow structs, because they are already
  // views of bytes.
  if (nb::isinstance<PythonChunks>(rows)) {
    const batch::ChunksImage image = nb::cast<const PythonChunks&>(rows).image();
    const ReleasedGil released;
    return ring.side().WriteChunks(image, Deadline::After(timeout_s));
  }
  const ArrowBatch batch(rows);
  const ReleasedGil released;
  return ring.side().WriteArrow(batch.schema(), batch.array(), Deadline::After(timeout_s));
}

nb::tuple NextEntry(PythonRingReader& ring, double timeout_s) {
  ring::EntryKind kind;
  std::shared_ptr<const batch::BatchView> batch;
  {
    const ReleasedGil released;
    const ring::RingEntry entry = ring.side().Next(Deadline::After(timeout_s));
    kind = entry.kind;
    // The batch is copied because Python may keep it, but the ring's space is needed for the next
    // entries.
    if (kind == ring::EntryKind::kBatch) batch = batch::CopyBatch(entry.image);
    ring.side().Release();
  }
  if (kind != ring::EntryKind::kBatch) {
    return nb::make_tuple(kind == ring::EntryKind::kFlush ? "flush" : "end", nb::none());
  }
  return nb::make_tuple("batch", PythonBatch(std::move(batch)));
}

constexpr double kRingTimeout = 600;  // default in seconds

template <typename Ring>
void DefineRing(nb::class_<Ring>& ring, const char* made) {
  ring.def_static("attach", &Ring::Attach, "ring_fd"_a, "signal_fd"_a,
                  "Takes ownership of the two inherited descriptors.");
  ring.def("fds", &Ring::Fds, made);
  ring.def("close_child_fds", &Ring::CloseChildFds,
           "Closes them here once the child has them; required to detect the child's death.");
  ring.def("close", &Ring::Close,
           "Closes this side and wakes the other. Safe while another thread waits.");
}

void DefineWriter(nb::module_& m) {
  nb::class_<PythonRingWriter> writer(
      m, "RingWriter",
      "Sends record batches to another process through shared memory. Waiting calls return False "
      "once the reader needs no more rows.");
  writer.def(
      "__init__",
      [](PythonRingWriter* self, size_t capacity_bytes) {
        ring::RingEnds ends = ring::CreateRing(capacity_bytes);
        new (self) PythonRingWriter(std::move(ends.writer), std::move(ends.reader));
      },
      "capacity_bytes"_a = ring::kDefaultRingBytes);
  DefineRing(writer, "(ring_fd, signal_fd) for the reading child to inherit.");
  writer.def("write", Write, "rows"_a, "timeout_s"_a = kRingTimeout,
             "Copies the rows of anything with __arrow_c_array__. Raises TimeoutError if the "
             "reader reads nothing, ConnectionError if it died, ValueError for an unsupported "
             "column type, OSError for a row of more than 4 GiB.");
  writer.def(
      "flush",
      [](PythonRingWriter& ring, double timeout_s) {
        return ring.side().WriteFlush(Deadline::After(timeout_s));
      },
      "timeout_s"_a = kRingTimeout, ReleaseGil(), "Marks the end of a partition.");
  writer.def(
      "end",
      [](PythonRingWriter& ring, double timeout_s) {
        return ring.side().WriteEnd(Deadline::After(timeout_s));
      },
      "timeout_s"_a = kRingTimeout, ReleaseGil(), "Writes the end after the last row.");
  writer.def(
      "fail",
      [](PythonRingWriter& ring, const std::string& message) {
        ring.side().Fail(Error(ErrorCode::kInternal, message));
      },
      "message"_a, "Makes the reader raise an error with this message.");
}

void DefineRingReader(nb::module_& m) {
  nb::class_<PythonRingReader> reader(m, "RingReader",
                                      "Reads what another process wrote into a ring.");
  reader.def(
      "__init__",
      [](PythonRingReader* self, size_t capacity_bytes) {
        ring::RingEnds ends = ring::CreateRing(capacity_bytes);
        new (self) PythonRingReader(std::move(ends.reader), std::move(ends.writer));
      },
      "capacity_bytes"_a = ring::kDefaultRingBytes);
  DefineRing(reader, "(ring_fd, signal_fd) for the writing child to inherit.");
  reader.def("next", NextEntry, "timeout_s"_a = kRingTimeout,
             "The next entry: ('batch', FeedBatch), ('flush', None) or ('end', None). Raises the "
             "writer's error, ConnectionError if it died, TimeoutError.");
  reader.def(
      "drain",
      [](PythonRingReader& ring, double timeout_s) { return DrainRing(ring.side(), timeout_s); },
      "timeout_s"_a = kRingTimeout, ReleaseGil(),
      "Reads to the next mark or the end, touching each cache line; (rows, bytes). "
      "For measurements.");
}

}  // namespace

void RegisterRing(nb::module_& m) {
  DefineBatches(m);
  DefineWriter(m);
  DefineRingReader(m);
  DefineSpoolSource(m);
}

}  // namespace hearth::bindings
