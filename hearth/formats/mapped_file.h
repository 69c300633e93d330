// Local files that are mapped read-only, so that batches may have values where they lie in one
// (docs/format_batch.md). A process finds the file by a value's address, and another process maps
// the same file by its path and what told it from others.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "hearth/base/fd.h"
#include "hearth/base/shared_memory.h"

namespace hearth::formats {

// What changes where a file is written or another takes its place.
struct FileIdentity {
  uint64_t bytes;
  int64_t modified_ns;
  uint64_t inode;

  bool operator==(const FileIdentity&) const = default;
};

// Immutable and thread-safe; the mapping goes with the last owner. No descriptor is kept, as a
// folder may have thousands of files. Bytes of a file that is cut while it is mapped are a SIGBUS.
class MappedFile : public std::enable_shared_from_this<MappedFile> {
 public:
  // Of a writer. Throws kNotFound, kPermissionDenied or, where it is no file or an empty one,
  // kDataLoss.
  static std::shared_ptr<const MappedFile> Open(const std::string& path);
  // Of a reader: the file that a writer had mapped, which this process maps once. Throws kNotFound,
  // kPermissionDenied or, where it is another one by now, kDataLoss.
  static std::shared_ptr<const MappedFile> Find(const std::string& path,
                                                const FileIdentity& identity);
  // The file of this process in whose mapping the bytes lie; null where there is none.
  static std::shared_ptr<const MappedFile> Around(std::string_view bytes);

  ~MappedFile();

  const std::string& path() const { return path_; }  // absolute
  const FileIdentity& identity() const { return identity_; }
  const std::byte* data() const { return mapping_.data(); }
  size_t size() const { return mapping_.size(); }
  // Whether all of these bytes lie in the mapping, and where they begin in the file.
  bool Has(std::string_view bytes) const;
  uint64_t PlaceOf(std::string_view bytes) const {
    return static_cast<uint64_t>(bytes.data() - reinterpret_cast<const char*>(data()));
  }
  // Whether reading it again costs no network: by the kind of its file system, where that is known.
  bool is_local() const { return is_local_; }

  // Throws kDataLoss where the file was written since it was mapped. One that was moved, removed or
  // replaced by another is still there for those who have mapped it.
  void CheckUnchanged() const;
  // Takes its pages out of this process's resident memory, as SpillFile::DropPages().
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
