// Reads single values of rows for the data layers. Thread-safe.
#pragma once

#include <string>

#include "hearth/dataset/spool/minibatch.h"

namespace hearth::caffe {

// The name of a row: the text of its column `id` or `SampleID`, or else `number` in eight digits.
std::string RowId(const dataset::Minibatch::Row& row, int64_t number);

// Returns the column `name` of a row. Throws kDataLoss, naming the column, if the row's value is
// null.
const batch::ColumnView& ColumnWithValue(const dataset::Minibatch::Row& row, std::string_view name);

// Returns true if the column's values are bytes: strings, binaries or lists of bytes (Spark's
// array<byte>).
bool HoldsBytes(const batch::ColumnView& column);

// The value in a row of the column, as a number; a text is parsed. Throws kDataLoss if it is not a
// number.
float NumberAt(const batch::ColumnView& column, int64_t row);

}  // namespace hearth::caffe
