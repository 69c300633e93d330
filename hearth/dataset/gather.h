// Copies one column of the selected rows into arrays.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "hearth/dataset/selected_rows.h"

namespace hearth::dataset {

// One column of selected rows. Errors are kInvalidArgument and name the column. Const calls are
// thread-safe.
class GatheredColumn {
 public:
  enum class Kind {
    kNumbers,  // and bools
    kLists,    // of numbers or bools
    kBytes,    // strings and binaries
    kOther,
  };

  // Selects the column with this name. Throws unless there is exactly one.
  GatheredColumn(std::shared_ptr<const SelectedRows> rows, std::string_view name);

  const std::string& name() const { return name_; }
  Kind kind() const { return kind_; }
  bool is_text() const;
  // Type of the column's numbers, or of the numbers in its lists.
  batch::ColumnType number_type() const { return number_type_; }
  static int64_t NumberBytes(batch::ColumnType type);  // in an array, a bool is one byte

  // Copies numbers contiguously. Converts null floats to NaN; throws for other nulls.
  void CopyNumbers(std::byte* to) const;

  // Length of the first row's list. For a fixed-size list this works even without rows.
  int64_t FirstLength() const;
  // Copies lists of this length; throws if a list has another length or is null.
  void CopyLists(int64_t length, std::byte* to) const;
  // Length and values of one row's list, for lists of several lengths; the length is -1 for null.
  int64_t LengthOf(int64_t row) const;
  void CopyList(int64_t row, std::byte* to) const;

  // Returns a string or binary; nullopt if it is null.
  std::optional<std::string_view> BytesOf(int64_t row) const;

 private:
  const batch::ColumnView& ViewOf(const batch::BatchView& batch) const {
    return batch.columns()[column_];
  }
  void CopyItems(const batch::ColumnView& values, int64_t begin, int64_t count,
                 std::byte* to) const;
  void WriteNaNs(const batch::ColumnView& values, int64_t begin, int64_t count,
                 std::byte* to) const;
  template <typename Source>
  void CopyBlocks(size_t bytes, std::byte* to, Source source) const;
  void CopyOneByOne(std::byte* to) const;
  [[noreturn]] void ThrowNulls() const;
  [[noreturn]] void ThrowLengths(int64_t length) const;

  std::shared_ptr<const SelectedRows> rows_;
  std::string name_;
  size_t column_ = 0;
  Kind kind_;
  batch::ColumnType number_type_ = batch::ColumnType::kBool;
};

}  // namespace hearth::dataset
