#include "batch.h"

#include <nanobind/ndarray.h>

#include <utility>

#include "hearth/batch/arrow_export.h"

namespace nb = nanobind;
using namespace nb::literals;

namespace hearth::bindings {
namespace {

using batch::BatchView;

// Puts a struct of Arrow's C data interface into a PyCapsule, as pyarrow expects.
template <typename T>
nb::object MakeCapsule(std::unique_ptr<T> owned, const char* name) {
  PyObject* capsule = PyCapsule_New(owned.get(), name, [](PyObject* object) {
    auto* inner = static_cast<T*>(PyCapsule_GetPointer(object, PyCapsule_GetName(object)));
    // `release` is null if the importer has taken over the contents, as Arrow's C data interface
    // specifies.
    if (inner->release != nullptr) inner->release(inner);
    delete inner;
  });
  if (capsule == nullptr) nb::raise_python_error();
  (void)owned.release();  // owned by the capsule now
  return nb::steal(capsule);
}

template <typename T>
T* CapsulePointer(nb::handle capsule, const char* name) {
  void* pointer = PyCapsule_GetPointer(capsule.ptr(), name);
  if (pointer == nullptr) nb::raise_python_error();
  return static_cast<T*>(pointer);
}

nb::tuple ExportRows(std::shared_ptr<const BatchView> batch) {
  auto schema = std::make_unique<ArrowSchema>();
  auto array = std::make_unique<ArrowArray>();
  batch::ExportBatch(std::move(batch), schema.get(), array.get());
  return Capsules(std::move(schema), std::move(array));
}

}  // namespace

nb::tuple Capsules(std::unique_ptr<ArrowSchema> schema, std::unique_ptr<ArrowArray> array) {
  // The array's capsule is made before the tuple, so that it frees its struct if a later allocation
  // fails.
  nb::object array_capsule = MakeCapsule(std::move(array), "arrow_array");
  return nb::make_tuple(MakeCapsule(std::move(schema), "arrow_schema"), array_capsule);
}

ArrowBatch::ArrowBatch(nb::handle rows)
    // This object keeps the capsules, so that the structs live as long as the object.
    : capsules_(nb::cast<nb::tuple>(rows.attr("__arrow_c_array__")())),
      schema_(CapsulePointer<ArrowSchema>(capsules_[0], "arrow_schema")),
      array_(CapsulePointer<ArrowArray>(capsules_[1], "arrow_array")) {}

PythonBatch::PythonBatch(std::shared_ptr<const BatchView> batch,
                         std::span<const std::byte> ring_image)
    : batch_(std::move(batch)), ring_image_(ring_image) {}

nb::tuple PythonBatch::Export() const {
  // Copies rows that are in a ring, because pyarrow may keep them for any time, but the ring reuses
  // its space.
  return ExportRows(ring_image_.empty() ? batch_ : batch::CopyBatch(ring_image_));
}

nb::tuple PythonBatch::Split(nb::handle self) const {
  const batch::ColumnView& chunk = batch_->column("piece");
  const batch::ColumnView& last = batch_->column("last");
  nb::list chunks, flags;
  for (int64_t row = 0; row < batch_->rows(); ++row) {
    const std::string_view bytes = chunk.Bytes(row);
    const size_t shape[] = {bytes.size()};
    using View = nb::ndarray<nb::memview, const char, nb::ndim<1>>;
    // A memoryview of the batch's own bytes, which keeps the batch alive.
    chunks.append(nb::cast(View(bytes.data(), 1, shape, self)));
    flags.append(last.AsInt64(row) != 0);
  }
  return nb::make_tuple(chunks, flags);
}

PythonChunks::PythonChunks(const nb::list& chunks, bool last) : last_(last) {
  for (nb::handle chunk : chunks) views_.push_back(buffers_.emplace_back(chunk).bytes());
}

nb::tuple PythonChunks::Export() const {
  const batch::ChunksImage chunks = image();
  std::vector<uint64_t> words(chunks.bytes() / sizeof(uint64_t));
  const std::span<std::byte> bytes = std::as_writable_bytes(std::span(words));
  chunks.Write(bytes);
  return ExportRows(batch::CopyBatch(bytes));
}

void DefineBatches(nb::module_& m) {
  nb::class_<PythonBatch>(m, "FeedBatch", "Rows for pyarrow.record_batch().")
      .def(
          "__arrow_c_array__", [](const PythonBatch& self, nb::handle) { return self.Export(); },
          "requested_schema"_a = nb::none())
      .def(
          "pieces", [](nb::handle self) { return nb::cast<const PythonBatch&>(self).Split(self); },
          "The contents of a Pieces batch: ([memoryview], [whether it ends its pickle]).")
      .def_prop_ro("num_rows", &PythonBatch::rows);
  nb::class_<PythonChunks>(m, "Pieces",
                           "Bytes for RingWriter.write(), which copies them into the ring as "
                           "columns `piece` and `last`.\n\nArgs:\n    pieces: objects with the "
                           "buffer interface.\n    last: whether the final one ends its pickle, as "
                           "all others do.")
      .def(nb::init<const nb::list&, bool>(), "pieces"_a, "last"_a = true)
      .def(
          "__arrow_c_array__", [](const PythonChunks& self, nb::handle) { return self.Export(); },
          "requested_schema"_a = nb::none())
      .def_prop_ro("num_rows", &PythonChunks::rows);
}

}  // namespace hearth::bindings
