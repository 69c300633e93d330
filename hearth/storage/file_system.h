// Access to files by URI, with one interface for local files and HDFS. Each failure is a
// hearth::Error that names the file and, for a remote file, the user and host. The codes are
// kNotFound, kPermissionDenied, kResourceExhausted (disk or quota), kUnavailable (no server
// responds, safe mode), kDataLoss and kInvalidArgument. All waits are bounded. A FileSystem and an
// InputFile may be used by any thread.
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
  std::string uri;  // the URI passed to Stat; in a listing, the folder's URI followed by the name
  bool is_folder = false;
  uint64_t size = 0;  // 0 for a folder
  int64_t modified_ms = 0;
  uint64_t id = 0;  // the HDFS file id; 0 if unknown, as for local files
};

// A file that is open for reading. Thread-safe.
class InputFile {
 public:
  virtual ~InputFile() = default;
  // Reads `size` bytes at `offset`, or fewer at the end of the file. For remote files, sequential
  // reads trigger read-ahead.
  virtual size_t ReadAt(uint64_t offset, void* data, size_t size) = 0;
  virtual uint64_t size() const = 0;
};

// A file that does not appear under its name before Commit, which replaces an existing file. If it
// is destroyed without Commit, it is discarded. Must be used by one thread.
class OutputFile {
 public:
  virtual ~OutputFile() = default;
  virtual void Append(std::string_view bytes) = 0;
  virtual void Commit() = 0;
};

// A file system. Thread-safe. All functions throw hearth::Error with the codes listed at the top of
// this file.
class FileSystem {
 public:
  virtual ~FileSystem() = default;
  // Returns nullopt if there is no file or folder with this name.
  virtual std::optional<FileStatus> Stat(const std::string& uri) = 0;
  // Returns the content of a folder, sorted by name. Throws kNotFound if the folder does not exist,
  // and kInvalidArgument for a file.
  virtual std::vector<FileStatus> List(const std::string& folder) = 0;
  virtual std::unique_ptr<InputFile> Open(const std::string& uri) = 0;
  // Throws if the file cannot be created. HDFS creates missing parent folders; a local file system
  // does not.
  virtual std::unique_ptr<OutputFile> Create(const std::string& uri) = 0;
  // Appends bytes to a file. Creates the file if it does not exist.
  virtual void Append(const std::string& uri, std::string_view bytes) = 0;
  // Renames `from` to `to`, and replaces `to` if it is a file. Throws if `to` is a folder or is on
  // another host.
  virtual void Rename(const std::string& from, const std::string& to) = 0;
  // Returns false if there is no file or folder with this name. A non-empty folder requires
  // `recursive`.
  virtual bool Delete(const std::string& uri, bool recursive) = 0;
  // Creates a folder and its parents. Does nothing if the folder exists.
  virtual void MakeFolders(const std::string& uri) = 0;
  // Deletes a file if it exists. Logs a warning if that fails.
  void DeleteQuietly(const std::string& uri) noexcept;

  // Reads a whole file.
  virtual std::string ReadAll(const std::string& uri);
};

// Returns the file system of a local path or of an hdfs:, webhdfs:, swebhdfs: or viewfs: URI. The
// file system exists until the process ends. Throws kUnimplemented for any other scheme. With
// `without_jvm`, HDFS is accessed through WebHDFS, for processes that should not spend memory on a
// JVM.
FileSystem& For(std::string_view uri, bool without_jvm = false);

// Returns the files and folders that match `pattern`, sorted. Path components with *, ? or [a-z]
// match as in a shell; a hidden name needs an explicit dot. The result is empty if nothing matches.
std::vector<std::string> Glob(const std::string& pattern);

}  // namespace hearth::storage
