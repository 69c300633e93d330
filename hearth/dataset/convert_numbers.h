// Converts numbers to another type.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "hearth/batch/column_type.h"

namespace hearth::dataset {

// Returns the numeric or bool type with this NumPy name; throws kInvalidArgument for other names.
batch::ColumnType NumberTypeOf(std::string_view name);

// The two types of a conversion, and the column's name for errors.
struct Conversion {
  batch::ColumnType from, to;
  std::string_view column;
};
// Writes `count` numbers as type `to`; a bool is one byte, 0 or 1. Only conversions to floating
// point round. Throws kInvalidArgument, naming the column, for a value that type `to` cannot
// represent.
void ConvertNumbers(const Conversion& conversion, const std::byte* values, int64_t count,
                    std::byte* converted);

}  // namespace hearth::dataset
