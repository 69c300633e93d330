// Single values of rows as the data layers read them. Thread-safe.
#pragma once

#include <string>

#include "hearth/dataset/minibatch.h"

namespace hearth::caffe {

// The row's name: its column `id` or `SampleID` as text, else `number` in eight digits.
std::string RowId(const dataset::Minibatch::Row& row, int64_t number);

// The row's value in a column; throws kDataLoss naming the column where it is null.
const batch::ColumnView& ColumnWithValue(const dataset::Minibatch::Row& row, std::string_view name);

// Whether its values are bytes: strings, binaries or lists of bytes, as Spark's array<byte> is.
bool HoldsBytes(const batch::ColumnView& column);

// A number, or text that is one. Throws kDataLoss for other text.
float NumberAt(const batch::ColumnView& column, int64_t row);

}  // namespace hearth::caffe
