// Reads single values of rows for the data layers. Thread-safe.
#pragma once

#include <string>

#include "hearth/dataset/spool/minibatch.h"

namespace hearth::caffe {

// The row's name: its column `id` or `SampleID` as text, else `number` in eight digits.
std::string RowId(const dataset::Minibatch::Row& row, int64_t number);

// The row's value in a column; throws kDataLoss naming the column if it is null.
const batch::ColumnView& ColumnWithValue(const dataset::Minibatch::Row& row, std::string_view name);

// Returns true if its values are bytes: strings, binaries or lists of bytes (Spark's array<byte>).
bool HoldsBytes(const batch::ColumnView& column);

// A number, or a text that is a number. Throws kDataLoss for other text.
float NumberAt(const batch::ColumnView& column, int64_t row);

}  // namespace hearth::caffe
