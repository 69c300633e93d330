// Numbers in another type.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "hearth/batch/column_type.h"

namespace hearth::dataset {

// The type of numbers or bools that NumPy calls so; throws kInvalidArgument for any other.
batch::ColumnType NumberTypeOf(std::string_view name);

// Writes `count` numbers in the type `to`; a bool is a byte, 0 or 1. Numbers may be rounded to the
// nearest one of a floating-point type, no more: throws kInvalidArgument, naming the column, for a
// value that the type cannot hold.
struct Conversion {
  batch::ColumnType from, to;
  std::string_view column;
};
void ConvertNumbers(const Conversion& conversion, const std::byte* values, int64_t count,
                    std::byte* converted);

}  // namespace hearth::dataset
