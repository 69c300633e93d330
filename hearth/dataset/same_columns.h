// Checks that batches of a dataset have the same columns.
#pragma once

#include <cstdint>
#include <string>

#include "hearth/batch/batch_view.h"

namespace hearth::dataset {

// Name of a column's type: "float32", "list<float32>", "struct<x: int64>". Offset width and value
// storage do not affect the name.
std::string TypeName(const batch::ColumnView& column);

// Throws kDataLoss if `batch`, of partition `partition`, has other columns than `before`. The error
// names the column and the partition.
void RequireSameColumns(const batch::BatchView& before, const batch::BatchView& batch,
                        int64_t partition);

}  // namespace hearth::dataset
