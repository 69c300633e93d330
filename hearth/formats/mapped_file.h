// Local files mapped read-only, so that batches can reference values in them
// (docs/format_batch.md). The writer finds the file by a value's address; the reader maps the same
// file by its path and checks its identity.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "hearth/base/fd.h"
#include "hearth/base/shared_memory.h"

namespace hearth::formats {

// Properties of a file, at least one of which changes if the file is modified or replaced.
struct FileIdentity {
  uint64_t bytes;
  int64_t modified_ns;
  uint64_t inode;

  bool operator==(const FileIdentity&) const = default;
};

// A file mapped read-only. Immutable and thread-safe; the mapping lasts until the last owner
// releases it. Keeps no descriptor open, because a folder may have thousands of files. If a mapped
// file is truncated, reading it raises SIGBUS.
//
// The base class has a const parameter because weak_from_this() would otherwise convert through a
// temporary owner. If that were the last owner, it would destroy the file while the list of files
// is locked.
class MappedFile : public std::enable_shared_from_this<const MappedFile> {
 public:
  // Maps a file for a writer. Throws kNotFound or kPermissionDenied, and kDataLoss if the file is
  // empty or not a regular file.
  static std::shared_ptr<const MappedFile> Open(const std::string& path);
  // Maps the file that a writer referenced, once per process. Throws kNotFound or
  // kPermissionDenied, and kDataLoss if the file has changed.
  static std::shared_ptr<const MappedFile> Find(const std::string& path,
                                                const FileIdentity& identity);
  // Returns the mapped file that contains the bytes; null if there is none.
  static std::shared_ptr<const MappedFile> Around(std::string_view bytes);

  ~MappedFile();

  const std::string& path() const { return path_; }  // absolute
  const FileIdentity& identity() const { return identity_; }
  const std::byte* data() const { return mapping_.data(); }
  size_t size() const { return mapping_.size(); }
  // Has() returns true if all of these bytes are in the mapping; OffsetOf() returns their offset in
  // the file.
  bool Has(std::string_view bytes) const;
  uint64_t OffsetOf(std::string_view bytes) const {
    return static_cast<uint64_t>(bytes.data() - reinterpret_cast<const char*>(data()));
  }
  // True if the file system is known to be local, so that reading again needs no network.
  bool is_local() const { return is_local_; }

  // Checks the file on the disk. Throws kDataLoss if it was modified since it was mapped. A file
  // that was moved, removed or replaced stays readable through the mapping.
  void CheckUnchanged() const;
  // Drops this file's pages from the process's resident memory, like SpillFile::DropPages().
  void DropPages() const;

 private:
  MappedFile(const Fd& file, const std::string& path);
  static std::shared_ptr<const MappedFile> Map(const Fd& file, const std::string& path);

  std::string path_;
  FileIdentity identity_;
  bool is_local_;
  Mapping mapping_;
};

}  // namespace hearth::formats
