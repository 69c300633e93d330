// Databases of keys and values in key order, used by Caffe's Data layer and tools. LMDB and LevelDB
// share one interface. A database must not be written while it is read.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "hearth/caffe/proto/messages.h"

namespace hearth::caffe {

// Iterates over the records of a database and keeps the database open. May be used by one thread at
// a time. Any number of cursors, also in other processes, may read one database; they do not change
// its files.
class DatabaseCursor {
 public:
  virtual ~DatabaseCursor() = default;

  virtual void SeekToFirst() = 0;
  // Moves to the first record whose key is at least `key`.
  virtual void Seek(std::string_view key) = 0;
  virtual void Next() = 0;
  // False after the last record. Key and value are valid until the cursor moves. If keeps_values()
  // is true, the value stays valid as long as the cursor exists.
  virtual bool valid() const = 0;
  virtual bool keeps_values() const { return false; }
  virtual std::string_view key() const = 0;
  virtual std::string_view value() const = 0;
  // Bytes read from a remote file system.
  virtual uint64_t fetched() const { return 0; }
};

// Adds records to a new database, from one thread. Records become part of the database with
// Commit(). If creating the database fails with an exception, the incomplete database is removed.
class DatabaseWriter {
 public:
  virtual ~DatabaseWriter() = default;

  virtual void Put(std::string_view key, std::string_view value) = 0;
  // Writes the records since the last commit to disk.
  virtual void Commit() = 0;
};

void SetShape(int64_t channels, int64_t height, int64_t width, Datum* datum);

// Maps "lmdb" or "leveldb", the values of the tools' -backend option. Throws kInvalidArgument for
// another name.
DataParameter::DB BackendNamed(std::string_view name);

// Returns a cursor at the first record. Throws kNotFound, kDataLoss, or kInvalidArgument for a
// database of the other format.
std::unique_ptr<DatabaseCursor> OpenDatabase(DataParameter::DB backend, const std::string& uri);
// Creates the folder. Throws kInvalidArgument if the path exists.
std::unique_ptr<DatabaseWriter> CreateDatabase(DataParameter::DB backend, const std::string& uri);

}  // namespace hearth::caffe
