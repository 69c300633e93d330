// Reads pickled rows of numbers into columns without making Python objects.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

namespace hearth::formats {

// One column: a number, or `width` of them, per row.
struct NumberColumn {
  bool floating = false;         // float64, else int64
  int64_t width = 0;             // 0: a number per row
  std::vector<uint64_t> values;  // the numbers' bits, row after row
};

struct PickledColumns {
  int64_t rows = 0;
  bool tuples = false;  // a column per field; else one column of rows that are numbers or lists
  std::vector<NumberColumn> columns;
};

// The rows of a pickled list if they are all numbers, all number lists of one length, or all tuples
// of such fields, each column of one type; nothing for any other pickle. Any thread.
std::optional<PickledColumns> ReadPickledColumns(std::string_view pickle);

}  // namespace hearth::formats
