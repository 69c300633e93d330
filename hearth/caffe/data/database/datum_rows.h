// The Datum records of a database as rows for a MemoryData layer: a range of keys at a time.
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

// What the parts of an LMDB are: part i begins at the key first_keys[i], if it has any record.
struct LmdbParts {
  uint64_t records = 0;
  std::vector<std::string> first_keys;
};

// How many of `records` come before part `part` of `parts`; sizes of parts differ by at most one.
uint64_t PartBegin(uint64_t records, uint64_t part, uint64_t parts);

// Finds where the parts begin; reads no values. `path`: the data file or its URI. Throws as
// LmdbPages does.
LmdbParts DivideLmdb(const std::string& path, uint64_t parts);

// Where an LMDB may be cut into some number of parts or up to twice as many, of about equal size,
// by its tree alone.
struct LmdbCuts {
  std::vector<LmdbSubtree> parts;  // each goes to the next one's first key; empty: it is too small
  uint64_t records = 0;
  size_t page_size = 0;
};
// Throws as LmdbPages does; kUnimplemented for keys of another order than their bytes'.
LmdbCuts CutLmdb(const std::string& path, size_t wanted);

// Some records that lie beside each other.
struct DatumRange {
  std::string first_key;
  std::optional<std::string> end_key;  // of the record behind them; none: not known, or they go on
                                       // to the end of the database
  std::optional<uint64_t> count;       // where it is known
  bool or_behind = false;  // no record need have the first key: those that come after it count
};

// Reads some records as batches. One thread. Throws kDataLoss where the file is damaged.
class DatumRows {
 public:
  // Of an LMDB's data file. Throws kDataLoss where there is no record of the first key.
  DatumRows(const std::string& path, DatumRange range);
  DatumRows(const std::string& path, const std::string& first_key, uint64_t count);
  // The same of any database; `name` is for messages: "the LevelDB /path".
  DatumRows(std::unique_ptr<DatabaseCursor> records, std::string name, DatumRange range);

  // Bytes that came from another file system.
  uint64_t fetched() const { return records_->fetched(); }
  // The next rows, some megabytes of them; null at the end.
  std::shared_ptr<const DatumBatch> Next();

 private:
  bool AtEnd() const;

  const std::shared_ptr<DatabaseCursor> records_;  // batches keep it, too
  const std::string name_;
  DatumRange range_;  // what is left of it
};

}  // namespace hearth::caffe
