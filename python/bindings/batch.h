// Rows exchanged between Python and a ring: batches read from a ring, and pickles written to one.
#pragma once

#include <nanobind/nanobind.h>

#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "buffer_view.h"
#include "hearth/batch/arrow_c_abi.h"
#include "hearth/batch/batch_view.h"
#include "hearth/batch/chunks_image.h"

namespace hearth::bindings {

// PyCapsules that own the structs, as pyarrow expects: (schema, array).
nanobind::tuple Capsules(std::unique_ptr<ArrowSchema> schema, std::unique_ptr<ArrowArray> array);

// Rows of any object with __arrow_c_array__, referenced through capsules that this class owns.
// Create and destroy with the GIL. Throws Python's error for other objects.
class ArrowBatch {
 public:
  explicit ArrowBatch(nanobind::handle rows);

  const ArrowSchema& schema() const { return *schema_; }
  const ArrowArray& array() const { return *array_; }

 private:
  nanobind::tuple capsules_;
  const ArrowSchema* schema_;
  const ArrowArray* array_;
};

// A batch that was read from a ring.
class PythonBatch {
 public:
  // `ring_image` is the memory of the rows in a ring, which stays valid until the reader advances.
  // If it is empty, the rows are on the heap.
  explicit PythonBatch(std::shared_ptr<const batch::BatchView> batch,
                       std::span<const std::byte> ring_image = {});

  int64_t rows() const { return batch_->rows(); }
  // Two capsules of Arrow's C data interface; copies rows that are in a ring.
  nanobind::tuple Export() const;
  // Returns (memoryviews of the column `piece`, flags of the column `last`). `self` is this object
  // in Python.
  nanobind::tuple Split(nanobind::handle self) const;

 private:
  std::shared_ptr<const batch::BatchView> batch_;
  std::span<const std::byte> ring_image_;
};

// Bytes of Python objects that are written to a ring as one batch. Create and destroy with the GIL.
class PythonChunks {
 public:
  // References the objects, which must support the buffer protocol. Throws Python's error for other
  // objects.
  PythonChunks(const nanobind::list& chunks, bool last);
  PythonChunks(const PythonChunks&) = delete;

  int64_t rows() const { return static_cast<int64_t>(views_.size()); }
  batch::ChunksImage image() const { return {views_, last_}; }  // valid as long as this object
  nanobind::tuple Export() const;

 private:
  std::deque<BufferView> buffers_;  // a deque, so that the addresses are stable
  std::vector<std::string_view> views_;
  bool last_;
};

void DefineBatches(nanobind::module_& m);

}  // namespace hearth::bindings
