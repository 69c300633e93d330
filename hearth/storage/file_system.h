// Files by URI: one interface for local files and HDFS. Every failure is a hearth::Error that names
// the file and, where there are such, the user and the host: kNotFound, kPermissionDenied,
// kResourceExhausted (disk or quota), kUnavailable (nobody answers, safe mode), kDataLoss,
// kInvalidArgument. Every wait is bounded. Any thread may use a FileSystem and an InputFile.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace hearth::storage {

struct FileStatus {
  std::string uri;  // as asked for; in a listing, the folder's URI and the name
  bool is_folder = false;
  uint64_t size = 0;  // of a file
  int64_t modified_ms = 0;
  uint64_t id = 0;  // of the file behind the name, where the system tells; 0: it does not
};

class InputFile {
 public:
  virtual ~InputFile() = default;
  // Reads `size` bytes at `offset`; fewer only where the file ends. Reads that follow each other
  // are read ahead where the file is not on this machine.
  virtual size_t ReadAt(uint64_t offset, void* data, size_t size) = 0;
  virtual uint64_t size() const = 0;
};

// A file that appears under its name only when it is complete: Commit gives it the name, in place
// of a file that has it. Destroyed without Commit it leaves nothing behind. One thread.
class OutputFile {
 public:
  virtual ~OutputFile() = default;
  virtual void Append(std::string_view bytes) = 0;
  virtual void Commit() = 0;
};

class FileSystem {
 public:
  virtual ~FileSystem() = default;
  // Nothing where nothing has that name.
  virtual std::optional<FileStatus> Stat(const std::string& uri) = 0;
  // What a folder holds, by name. kNotFound where it is not there, kInvalidArgument for a file.
  virtual std::vector<FileStatus> List(const std::string& folder) = 0;
  virtual std::unique_ptr<InputFile> Open(const std::string& uri) = 0;
  // Throws if the file cannot be made. HDFS creates the folders above it, a local disk does not.
  virtual std::unique_ptr<OutputFile> Create(const std::string& uri) = 0;
  // Adds bytes at the end of a file, which it creates if needed.
  virtual void Append(const std::string& uri, std::string_view bytes) = 0;
  // Replaces a file that has the new name; a folder with that name is an error, and so is another
  // host.
  virtual void Rename(const std::string& from, const std::string& to) = 0;
  // False where nothing has that name. A folder that holds something needs `recursive`.
  virtual bool Delete(const std::string& uri, bool recursive) = 0;
  // Creates the folder and those above it; does nothing if it exists.
  virtual void MakeFolders(const std::string& uri) = 0;
  // A whole file.
  virtual std::string ReadAll(const std::string& uri);
};

// The file system that a path or URI belongs to: local, hdfs:, webhdfs:, swebhdfs:, viewfs:. It
// lives as long as the process. Throws kUnimplemented for any other scheme. `without_jvm`: HDFS by
// WebHDFS, for a process that is not worth a JVM's memory.
FileSystem& For(std::string_view uri, bool without_jvm = false);

// The files and folders whose names match, in order. Of a name's parts, those with *, ? or [a-z]
// match as in a shell; a hidden name needs its dot. Nothing where nothing matches.
std::vector<std::string> Glob(const std::string& pattern);

}  // namespace hearth::storage
