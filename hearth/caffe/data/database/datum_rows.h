// Reads ranges of a database's Datum records as rows for a MemoryData layer.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "hearth/caffe/data/database/database.h"
#include "hearth/caffe/data/database/datum_batch.h"
#include "hearth/caffe/data/database/lmdb_pages.h"

namespace hearth::caffe {

// The parts into which an LMDB is divided. Part i begins at first_keys[i], unless it is empty.
struct LmdbParts {
  uint64_t records = 0;
  std::vector<std::string> first_keys;
};

// The number of records before part `part` if `records` records are divided into `parts` parts
// whose sizes differ by at most one.
uint64_t PartBegin(uint64_t records, uint64_t part, uint64_t parts);

// Finds the first keys of the parts without reading values. `path` is the data file or its URI.
// Throws like LmdbPages.
LmdbParts DivideLmdb(const std::string& path, uint64_t parts);

// The parts of an LMDB that was divided by its B+tree alone. Their sizes are similar, and there are
// at least as many as wanted and at most twice as many.
struct LmdbCuts {
  // Each part ends at the first key of the next part. Empty if the file is too small to be divided.
  std::vector<LmdbSubtree> parts;
  uint64_t records = 0;
  size_t page_size = 0;
};
// Throws like LmdbPages, and kUnimplemented if the keys are not in byte order.
LmdbCuts CutLmdb(const std::string& path, size_t wanted);

// A contiguous key range.
struct DatumRange {
  std::string first_key;
  std::optional<std::string> end_key;  // exclusive; empty if unknown or at the database's end
  std::optional<uint64_t> count;       // empty if unknown
  bool or_behind = false;  // first_key is only a lower bound: no record needs to have it
};

// Reads a range of records in batches, from one thread. Throws kDataLoss if the file is damaged.
class DatumRows {
 public:
  // Reads an LMDB's data file. Throws kDataLoss if no record has the first key.
  DatumRows(const std::string& path, DatumRange range);
  DatumRows(const std::string& path, const std::string& first_key, uint64_t count);
  // Reads any database. `name` is used in messages, such as "the LevelDB /path".
  DatumRows(std::unique_ptr<DatabaseCursor> records, std::string name, DatumRange range);

  // Bytes read from a remote file system.
  uint64_t fetched() const { return records_->fetched(); }
  // Returns the next rows, some megabytes; null at the end.
  std::shared_ptr<const DatumBatch> Next();

 private:
  bool AtEnd() const;

  const std::shared_ptr<DatabaseCursor> records_;  // shared with the batches
  const std::string name_;
  DatumRange range_;  // the part not yet read
};

}  // namespace hearth::caffe
