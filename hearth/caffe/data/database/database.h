// Databases of keys and values in key order, as Caffe's Data layer and tools use them: LMDB and
// LevelDB behind one interface. A database must not be written while it is read.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "hearth/caffe/proto/messages.h"

namespace hearth::caffe {

// Iterates over the records of a database, which it keeps open. One thread at a time. Any number of
// cursors, also in other processes, may read one database; they do not change its files.
class DatabaseCursor {
 public:
  virtual ~DatabaseCursor() = default;

  virtual void SeekToFirst() = 0;
  // Moves to the first record whose key is at least `key`.
  virtual void Seek(std::string_view key) = 0;
  virtual void Next() = 0;
  // False after the last record. Key and value are valid until the cursor moves, or as long as the
  // cursor if keeps_values().
  virtual bool valid() const = 0;
  virtual bool keeps_values() const { return false; }
  virtual std::string_view key() const = 0;
  virtual std::string_view value() const = 0;
  // Bytes read from a remote file system.
  virtual uint64_t fetched() const { return 0; }
};

// Adds records to a new database. One thread. Uncommitted records are not in the database; a
// database that an exception leaves incomplete is removed.
class DatabaseWriter {
 public:
  virtual ~DatabaseWriter() = default;

  virtual void Put(std::string_view key, std::string_view value) = 0;
  // Writes the records since the last commit to disk.
  virtual void Commit() = 0;
};

void SetShape(int64_t channels, int64_t height, int64_t width, Datum* datum);

// "lmdb" or "leveldb", as in the tools' -backend. Throws kInvalidArgument for another name.
DataParameter::DB BackendNamed(std::string_view name);

// Positioned at the first record. Throws kNotFound, kDataLoss, or kInvalidArgument for a database
// of the other format.
std::unique_ptr<DatabaseCursor> OpenDatabase(DataParameter::DB backend, const std::string& uri);
// Creates the folder. Throws kInvalidArgument if the path exists.
std::unique_ptr<DatabaseWriter> CreateDatabase(DataParameter::DB backend, const std::string& uri);

}  // namespace hearth::caffe
