// Reads pickled numeric rows into columns without creating Python objects.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

namespace hearth::formats {

// A column with one number per row, or with `width` numbers per row.
struct NumberColumn {
  bool floating = false;         // true: float64, false: int64
  int64_t width = 0;             // 0: one number per row
  std::vector<uint64_t> values;  // bit patterns of the numbers, in row order
};

// Rows as columns of numbers.
struct PickledColumns {
  int64_t rows = 0;
  bool tuples = false;  // rows are tuples: one column per field; else one column
  std::vector<NumberColumn> columns;
};

// Reads the columns of a pickled list of rows. All rows must be numbers, lists of numbers of one
// length, or tuples of such fields, with one type per column; returns nullopt for any other pickle.
// Thread-safe.
std::optional<PickledColumns> ReadPickledColumns(std::string_view pickle);

}  // namespace hearth::formats
