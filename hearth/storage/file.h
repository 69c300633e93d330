// Reads and writes whole files, by path or URI.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "hearth/storage/file_system.h"

namespace hearth::storage {

// Returns the content of the file at `uri`. Throws hearth::Error, naming the file.
std::string ReadFile(const std::string& uri);

// Returns true if there is a file or folder with this name.
bool Exists(const std::string& uri);

// A file that does not appear under its name before Commit; without Commit it is discarded. On a
// local disk, bytes are written to an unnamed file, or to a temporary file in the same folder if
// the file system does not support unnamed ones. The bytes of remote files are spooled on this
// machine until Commit. Must be used by one thread.
class AtomicFile {
 public:
  explicit AtomicFile(const std::string& uri) : file_(For(uri).Create(uri)) {}

  void Append(std::string_view bytes) { file_->Append(bytes); }
  void Commit() { file_->Commit(); }

 private:
  std::unique_ptr<OutputFile> file_;
};

}  // namespace hearth::storage
