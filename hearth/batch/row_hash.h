// Rolling hash of rows, to check that rows sent a second time are unchanged. Thread-safe; never
// throws. Not cryptographic.
#pragma once

#include <cstdint>
#include <vector>

#include "hearth/batch/batch_view.h"
#include "hearth/batch/column_view.h"

namespace hearth::batch {

// Incremented with every change of the hash, because files store hashes. Version 1 hashed all
// values by XXH3.
inline constexpr int kRowHashVersion = 2;

// Extends `hash` (0: no rows yet) by the first `rows` rows of a batch. Equal rows in the same order
// have the same hash, regardless of batch boundaries and of the offset width of lists; bytes under
// a null or after the last bit are ignored, as are names and types of columns.
uint64_t HashRows(uint64_t hash, const std::vector<ColumnView>& columns, int64_t rows);

// Extends `hash` by a whole batch, including the names and types of its columns. The result depends
// on the batch boundaries.
uint64_t HashBatch(uint64_t hash, const BatchView& batch);

}  // namespace hearth::batch
