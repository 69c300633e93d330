// Looks up columns by name, and the items of list columns by row.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include "hearth/batch/column_view.h"

namespace hearth::dataset {

// The items of one row of a list column, [begin, end).
struct ItemRange {
  int64_t begin, end;
};

// Range of this row's list in the items of all lists; also defined if the list is null.
inline ItemRange ItemsOf(const batch::ColumnView& lists, int64_t row) {
  if (lists.type() == batch::ColumnType::kFixedSizeList) {
    return {row * lists.list_size(), (row + 1) * lists.list_size()};
  }
  if (lists.type() == batch::ColumnType::kLargeList) {
    const auto* offsets = static_cast<const int64_t*>(lists.buffers().offsets);
    return {offsets[row], offsets[row + 1]};
  }
  const auto* offsets = static_cast<const int32_t*>(lists.buffers().offsets);
  return {offsets[row], offsets[row + 1]};
}

// Returns the index of the column with this name. Throws kInvalidArgument unless there is exactly
// one.
size_t ColumnNamed(const std::vector<batch::ColumnView>& columns, std::string_view name);

}  // namespace hearth::dataset
