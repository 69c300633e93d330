// Whether two batches of a dataset have the same columns.
#pragma once

#include <cstdint>
#include <string>

#include "hearth/batch/batch_view.h"

namespace hearth::dataset {

// What a column's type is called: "float32", "list<float32>", "struct<x: int64>". Types that differ
// in the width of their offsets, or in where their values lie, have one name.
std::string TypeName(const batch::ColumnView& column);

// Throws kDataLoss, naming the column and the partition of the later batch, where they differ.
void RequireSameColumns(const batch::BatchView& before, const batch::BatchView& batch,
                        int64_t partition);

}  // namespace hearth::dataset
