// Whole files in and out, by path or URI.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "hearth/storage/file_system.h"

namespace hearth::storage {

// The contents of the file at `uri`. Throws hearth::Error that names it.
std::string ReadFile(const std::string& uri);

// Whether a file or folder has that name.
bool Exists(const std::string& uri);

// Removes a file if it exists; failures are ignored.
void RemoveQuietly(const std::string& uri) noexcept;

// A file that appears under its name only when it is complete; without Commit nothing is left
// behind. On a local disk the bytes go to a file without a name (where the file system has none: to
// a temporary one beside it), elsewhere they are kept on this machine until Commit. One thread.
class AtomicFile {
 public:
  explicit AtomicFile(const std::string& uri) : file_(For(uri).Create(uri)) {}

  void Append(std::string_view bytes) { file_->Append(bytes); }
  void Commit() { file_->Commit(); }

 private:
  std::unique_ptr<OutputFile> file_;
};

}  // namespace hearth::storage
