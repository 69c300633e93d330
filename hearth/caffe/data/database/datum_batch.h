// Converts records of a database to the columns of a MemoryData layer.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "hearth/batch/arrow_c_abi.h"
#include "hearth/caffe/data/database/database.h"

namespace hearth::caffe {

// A batch of Datum records as Arrow columns: id (the key), label, channels, height, width, encoded
// and data. For a record that is not a Datum, all columns but id are null; for a Datum with float
// pixels, data is null. Add() must be called from one thread.
class DatumBatch {
 public:
  // If `records` keeps its values, the batch refers to the pixels in the record; otherwise it
  // copies them.
  explicit DatumBatch(std::shared_ptr<const DatabaseCursor> records)
      : records_(std::move(records)) {}

  void Add(std::string_view key, std::string_view value);

  int64_t rows() const { return static_cast<int64_t>(ids_.size()); }
  size_t data_bytes() const { return data_bytes_; }

  // Exports the batch through Arrow's C data interface; the column "data" has the type "binary
  // view". The receiver releases `schema` and `array`, which own the batch and the records.
  static void Export(const std::shared_ptr<const DatumBatch>& batch, ArrowSchema* schema,
                     ArrowArray* array);

 private:
  std::string_view Referenced(std::string_view bytes);

  const std::shared_ptr<const DatabaseCursor> records_;
  std::deque<std::string> copies_;  // a deque keeps addresses stable
  std::vector<std::string> ids_;
  std::vector<std::string_view> data_;
  std::vector<int32_t> labels_, channels_, heights_, widths_, encoded_;
  std::vector<bool> damaged_, without_data_;
  size_t data_bytes_ = 0;
};

// Returns the key as text: unchanged if it is printable ASCII, as digits and file names are;
// otherwise its bytes in hexadecimal.
std::string TextOfKey(std::string_view key);

}  // namespace hearth::caffe
