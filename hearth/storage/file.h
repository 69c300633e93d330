// Reads and writes whole files, by path or URI.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "hearth/storage/file_system.h"

namespace hearth::storage {

// Returns the contents of the file at `uri`. Throws hearth::Error, which names it.
std::string ReadFile(const std::string& uri);

// True if a file or folder of that name exists.
bool Exists(const std::string& uri);

// A file that appears under its name only when it is complete; without Commit nothing remains. On a
// local disk the bytes go to an unnamed file (or a temporary file in the same folder, if the file
// system does not support that); for remote files they are spooled on this machine until Commit.
// One thread.
class AtomicFile {
 public:
  explicit AtomicFile(const std::string& uri) : file_(For(uri).Create(uri)) {}

  void Append(std::string_view bytes) { file_->Append(bytes); }
  void Commit() { file_->Commit(); }

 private:
  std::unique_ptr<OutputFile> file_;
};

}  // namespace hearth::storage
