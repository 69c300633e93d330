// The Datum records of a LevelDB as rows, in ranges of keys that tasks of Spark read on their own.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "hearth/caffe/data/database/datum_rows.h"

namespace hearth::caffe {

// What is read whole to be divided.
inline constexpr uint64_t kSmallLevelDb = uint64_t{64} << 20;

// As many ranges as `parts`, in the order of keys, some of them empty where there are few records.
// A database of less than `small` bytes is divided by its number of records, as an LMDB is; another
// one, of which that would take a reading of all, by its bytes. `path`: the folder. Throws
// kDataLoss where it cannot be read.
std::vector<DatumRange> DivideLevelDb(const std::string& path, uint64_t parts,
                                      uint64_t small = kSmallLevelDb);

// Throws as DivideLevelDb does.
std::unique_ptr<DatumRows> ReadLevelDb(const std::string& path, DatumRange range);

}  // namespace hearth::caffe
