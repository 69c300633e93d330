// Rows between a ring and Python: batches that came out of one, pickles that go into one.
#pragma once

#include <nanobind/nanobind.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "hearth/batch/arrow_c_abi.h"
#include "hearth/batch/batch_view.h"
#include "hearth/batch/pieces_image.h"

namespace hearth::bindings {

// The capsules that pyarrow asks for, which own the structs: (schema, array).
nanobind::tuple Capsules(std::unique_ptr<ArrowSchema> schema, std::unique_ptr<ArrowArray> array);

// The rows of anything with __arrow_c_array__, borrowed from its capsules, which this keeps. Made
// and destroyed with the GIL; throws Python's error for other objects.
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

// A batch that was read.
class PythonBatch {
 public:
  // `ring_image`: where the rows lie in a ring, which the view keeps; they hold until its reader
  // goes on. Empty: they stay.
  explicit PythonBatch(std::shared_ptr<const batch::BatchView> batch,
                       std::span<const std::byte> ring_image = {});

  int64_t rows() const { return batch_->rows(); }
  // Two capsules of Arrow's C data interface; rows in a ring are copied.
  nanobind::tuple Export() const;
  // (memoryviews of the column `piece`, flags of the column `last`). `self` is this as an object.
  nanobind::tuple Split(nanobind::handle self) const;

 private:
  std::shared_ptr<const batch::BatchView> batch_;
  std::span<const std::byte> ring_image_;
};

// Bytes of Python objects that go into a ring as one batch. The GIL is held where it is made and
// destroyed.
class PythonPieces {
 public:
  // Objects with the buffer interface, which are kept. Throws Python's error for others.
  PythonPieces(const nanobind::list& pieces, bool last);
  ~PythonPieces();
  PythonPieces(const PythonPieces&) = delete;

  int64_t rows() const { return static_cast<int64_t>(views_.size()); }
  batch::PiecesImage image() const { return {views_, last_}; }  // borrows this
  nanobind::tuple Export() const;

 private:
  std::vector<Py_buffer> buffers_;
  std::vector<std::string_view> views_;
  bool last_;
};

void DefineBatches(nanobind::module_& m);

}  // namespace hearth::bindings
