// A rolling hash of rows: what tells whether rows that come again are those that came before.
// Thread-safe; never throws. Not meant to withstand an adversary.
#pragma once

#include <cstdint>
#include <vector>

#include "hearth/feed/batch_view.h"
#include "hearth/feed/column_view.h"

namespace hearth::feed {

// Another number for every change of the hashes, which files keep. 1 hashed all values by XXH3.
inline constexpr int kRowHashVersion = 2;

// Continues `hash` (0: no rows yet) by the first `rows` rows of a batch. Equal rows in the same
// order give the same hash, however they are cut into batches and whichever width the offsets of
// their lists have; what lies below a null or behind the last bit is no content. Names and types of
// columns do not count.
uint64_t HashRows(uint64_t hash, const std::vector<ColumnView>& columns, int64_t rows);

// The same of a whole batch, names and types of its columns before its rows: how the rows were cut
// into batches counts.
uint64_t HashBatch(uint64_t hash, const BatchView& batch);

}  // namespace hearth::feed
