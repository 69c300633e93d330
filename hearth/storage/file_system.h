// Files by URI: one interface for local files and HDFS. Every failure is a hearth::Error that names
// the file and, if any, the user and host: kNotFound, kPermissionDenied, kResourceExhausted (disk
// or quota), kUnavailable (no server responds, safe mode), kDataLoss, kInvalidArgument. Every wait
// is bounded. Any thread may use a FileSystem and an InputFile.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace hearth::storage {

// Properties of a file or folder.
struct FileStatus {
  std::string uri;  // as passed; in a listing, the folder's URI and the name
  bool is_folder = false;
  uint64_t size = 0;  // of a file
  int64_t modified_ms = 0;
  uint64_t id = 0;  // inode or equivalent, if the file system has one; 0: unknown
};

// A file that is open for reading. Thread-safe.
class InputFile {
 public:
  virtual ~InputFile() = default;
  // Reads `size` bytes at `offset`; fewer only at the end of the file. Sequential reads of remote
  // files are read ahead.
  virtual size_t ReadAt(uint64_t offset, void* data, size_t size) = 0;
  virtual uint64_t size() const = 0;
};

// A file that appears under its name only when it is complete: Commit replaces an existing file of
// that name. Destroyed without Commit it leaves nothing behind. One thread.
class OutputFile {
 public:
  virtual ~OutputFile() = default;
  virtual void Append(std::string_view bytes) = 0;
  virtual void Commit() = 0;
};

// One file system. Thread-safe; every call throws hearth::Error as described above.
class FileSystem {
 public:
  virtual ~FileSystem() = default;
  // Empty if no file or folder has that name.
  virtual std::optional<FileStatus> Stat(const std::string& uri) = 0;
  // The contents of a folder, sorted by name. kNotFound if it does not exist, kInvalidArgument for
  // a file.
  virtual std::vector<FileStatus> List(const std::string& folder) = 0;
  virtual std::unique_ptr<InputFile> Open(const std::string& uri) = 0;
  // Throws if the file cannot be created. HDFS creates missing parent folders, a local disk does
  // not.
  virtual std::unique_ptr<OutputFile> Create(const std::string& uri) = 0;
  // Appends bytes to a file, which is created if needed.
  virtual void Append(const std::string& uri, std::string_view bytes) = 0;
  // Replaces an existing file of the new name; an existing folder, or another host, is an error.
  virtual void Rename(const std::string& from, const std::string& to) = 0;
  // Returns false if nothing has that name. A non-empty folder needs `recursive`.
  virtual bool Delete(const std::string& uri, bool recursive) = 0;
  // Creates the folder and its parents; does nothing if it exists.
  virtual void MakeFolders(const std::string& uri) = 0;
  // Deletes a file if it exists. A failure is only a warning.
  void DeleteQuietly(const std::string& uri) noexcept;

  // Reads a whole file.
  virtual std::string ReadAll(const std::string& uri);
};

// The file system of a path or URI: local, hdfs:, webhdfs:, swebhdfs:, viewfs:. It lives as long as
// the process. Throws kUnimplemented for any other scheme. `without_jvm`: uses WebHDFS for HDFS, in
// processes that should not spend memory on a JVM.
FileSystem& For(std::string_view uri, bool without_jvm = false);

// The files and folders whose names match, sorted. Path components with *, ? or [a-z] match as in a
// shell; a hidden name needs an explicit dot. Empty if nothing matches.
std::vector<std::string> Glob(const std::string& pattern);

}  // namespace hearth::storage
