// Reads a LevelDB's Datum records as rows, in key ranges for independent Spark tasks.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "hearth/caffe/data/database/datum_rows.h"

namespace hearth::caffe {

// Databases below this size are scanned in full to find split points.
inline constexpr uint64_t kSmallLevelDb = uint64_t{64} << 20;

// Returns `parts` ranges in key order, some of which are empty if there are few records. A database
// of less than `small` bytes is divided by its number of records, like an LMDB. A larger one is
// divided by its bytes, since counting its records would need a full scan. `path` is the folder.
// Throws kDataLoss if the database cannot be read.
std::vector<DatumRange> DivideLevelDb(const std::string& path, uint64_t parts,
                                      uint64_t small = kSmallLevelDb);

// Reads a range that DivideLevelDb returned, and throws like it.
std::unique_ptr<DatumRows> ReadLevelDb(const std::string& path, DatumRange range);

}  // namespace hearth::caffe
