// Records of a database as the columns of a MemoryData layer.
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

// Columns id (the key), label, channels, height, width, encoded and data. A record that is no Datum
// has null in all columns but the id; one whose pixels are floats has no data. One thread adds.
class DatumBatch {
 public:
  // Pixels stay where the records lie, as far as these keep their values; else they are copied.
  explicit DatumBatch(std::shared_ptr<const DatabaseCursor> records)
      : records_(std::move(records)) {}

  void Add(std::string_view key, std::string_view value);

  int64_t rows() const { return static_cast<int64_t>(ids_.size()); }
  size_t data_bytes() const { return data_bytes_; }

  // By Arrow's C data interface; the data are of its type "binary view". The receiver releases both
  // structs, which keep the batch and the records.
  static void Export(const std::shared_ptr<const DatumBatch>& batch, ArrowSchema* schema,
                     ArrowArray* array);

 private:
  std::string_view Kept(std::string_view bytes);

  const std::shared_ptr<const DatabaseCursor> records_;
  std::deque<std::string> copies_;  // addresses stay
  std::vector<std::string> ids_;
  std::vector<std::string_view> data_;
  std::vector<int32_t> labels_, channels_, heights_, widths_, encoded_;
  std::vector<bool> damaged_, without_data_;
  size_t data_bytes_ = 0;
};

// Keys are made of digits and file names; what is no text is told by its bytes.
std::string TextOfKey(std::string_view key);

}  // namespace hearth::caffe
