// A rolling hash of rows, to tell whether rows that are sent again are the same as before.
// Thread-safe; never throws. Not meant to withstand an adversary.
#pragma once

#include <cstdint>
#include <vector>

#include "hearth/batch/batch_view.h"
#include "hearth/batch/column_view.h"

namespace hearth::batch {

// Goes up with every change of the hash, because files store hashes. 1 hashed all values by XXH3.
inline constexpr int kRowHashVersion = 2;

// Continues `hash` (0: no rows yet) by the first `rows` rows of a batch. Equal rows in the same
// order give the same hash, however they are cut into batches and whichever width the offsets of
// their lists have; bytes under a null or after the last bit do not count. Nor do names and types
// of columns.
uint64_t HashRows(uint64_t hash, const std::vector<ColumnView>& columns, int64_t rows);

// The same for a whole batch, with the names and types of its columns; the result depends on how
// the rows were cut into batches.
uint64_t HashBatch(uint64_t hash, const BatchView& batch);

}  // namespace hearth::batch
