// A rolling hash of rows: what tells whether a stream that is read again is the one it was.
#pragma once

#include <cstdint>
#include <vector>

#include "hearth/feed/column_view.h"

namespace hearth::feed {

// Continues `hash` (0: no rows yet) by the first `rows` rows of a batch. Equal rows in the same
// order give the same hash, however they are cut into batches and whichever width the offsets of
// their lists have. Names and types of columns do not count. Not meant to withstand an adversary.
uint64_t HashRows(uint64_t hash, const std::vector<ColumnView>& columns, int64_t rows);

}  // namespace hearth::feed
