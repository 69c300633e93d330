// Databases of keys and values in key order, as Caffe's Data layer and tools use them: LMDB and
// LevelDB behind one interface. A database must not be written while it is read.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "hearth/caffe/proto/messages.h"

namespace hearth::caffe {

// Goes through the records of a database, which it keeps open. One thread at a time. Any number of
// cursors, also of other processes, may read one database; none changes its files.
class DatabaseCursor {
 public:
  virtual ~DatabaseCursor() = default;

  virtual void SeekToFirst() = 0;
  // To the first record whose key is `key` or comes after it.
  virtual void Seek(std::string_view key) = 0;
  virtual void Next() = 0;
  // False after the last record. Key and value live until the cursor moves, or as long as the
  // cursor where it keeps them.
  virtual bool valid() const = 0;
  virtual bool keeps_values() const { return false; }
  virtual std::string_view key() const = 0;
  virtual std::string_view value() const = 0;
  // Bytes that came from another file system.
  virtual uint64_t fetched() const { return 0; }
};

// Adds records to a new database. One thread. What was not committed is not in the database; one
// that an exception leaves unfinished is removed.
class DatabaseWriter {
 public:
  virtual ~DatabaseWriter() = default;

  virtual void Put(std::string_view key, std::string_view value) = 0;
  // Brings to disk what was put since the last one.
  virtual void Commit() = 0;
};

// "lmdb" or "leveldb", as the tools' -backend has it. Throws kInvalidArgument for another name.
DataParameter::DB BackendNamed(std::string_view name);

// At the first record. Throws kNotFound, kDataLoss, or kInvalidArgument for a database of the other
// kind.
std::unique_ptr<DatabaseCursor> OpenDatabase(DataParameter::DB backend, const std::string& uri);
// Makes the folder. Throws kInvalidArgument where there is something of that name already.
std::unique_ptr<DatabaseWriter> CreateDatabase(DataParameter::DB backend, const std::string& uri);

}  // namespace hearth::caffe
