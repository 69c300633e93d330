// Typed access to one column of a batch. Does not own the bytes.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "hearth/batch/batch_image.h"
#include "hearth/batch/column_type.h"

namespace hearth::batch {

// Buffers of one column in Arrow's layout, starting at the column's first value.
struct ColumnBuffers {
  const uint8_t* validity = nullptr;  // bit i set: value i is not null; nullptr: no nulls
  const void* offsets = nullptr;      // length + 1 offsets, int32 or int64, of strings and lists
  const uint8_t* data = nullptr;      // values, bits of bools, or bytes of strings
  int64_t data_bytes = 0;
  // Location of each value in a file; `data` then points to the file's bytes.
  const FileLocation* locations = nullptr;
};

// One column of a batch. Reading is thread-safe. Row numbers must be in [0, length()) and are not
// checked. Reading a null, or a value of another type, throws an Error that names the column.
class ColumnView {
 public:
  ColumnView(std::string_view name, ArrowType type, int64_t length, ColumnBuffers buffers,
             std::vector<ColumnView> children);

  std::string_view name() const { return name_; }
  ColumnType type() const { return type_.type; }
  int64_t list_size() const { return type_.list_size; }
  int64_t length() const { return length_; }
  const ColumnBuffers& buffers() const { return buffers_; }
  const std::vector<ColumnView>& children() const { return children_; }

  bool IsNull(int64_t row) const {
    return buffers_.validity != nullptr && !(buffers_.validity[row >> 3] >> (row & 7) & 1);
  }

  // Return a number or a bool, converted by static_cast.
  double AsDouble(int64_t row) const;
  int64_t AsInt64(int64_t row) const;

  // Strings and binaries, without a copy.
  std::string_view Bytes(int64_t row) const;

  // Formats numbers, bools and strings as text, for labels and ids.
  std::string AsText(int64_t row) const;

  // Number of values in a list; 1 for a number.
  int64_t ListLength(int64_t row) const;

  // Returns a list of numbers as floats; a single number is a list of one. The span points into the
  // batch if the values are float32, else into `scratch`.
  std::span<const float> FloatList(int64_t row, std::vector<float>* scratch) const;

  // Prefetch hints for random access: PrefetchEntry for the row's offset or number, then, once that
  // is cached, PrefetchValue for the first bytes of the value.
  void PrefetchEntry(int64_t row) const;
  void PrefetchValue(int64_t row) const;

  // Field of a struct column, null if there is none with this name.
  const ColumnView* FindChild(std::string_view name) const;

 private:
  // Values [begin, end).
  struct Range {
    int64_t begin;
    int64_t end;
  };
  Range ValueRange(int64_t row) const;
  void RequireValue(int64_t row, bool type_fits, std::string_view wanted) const;

  std::string_view name_;
  ArrowType type_;
  int64_t length_;
  ColumnBuffers buffers_;
  std::vector<ColumnView> children_;
};

}  // namespace hearth::batch
