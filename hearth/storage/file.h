// Whole files in and out.
#pragma once

#include <string>
#include <string_view>

namespace hearth::storage {

// The contents of the file at `uri`. Throws hearth::Error that names it.
std::string ReadFile(const std::string& uri);

// A file that appears under its name only when it is complete: bytes go to a file without a name
// (where the file system has none: to a temporary one beside it), which Commit writes to disk and
// names. Without Commit nothing is left behind. One thread.
class AtomicFile {
 public:
  explicit AtomicFile(const std::string& uri);
  ~AtomicFile();
  AtomicFile(const AtomicFile&) = delete;
  AtomicFile& operator=(const AtomicFile&) = delete;

  void Append(std::string_view bytes);
  void Commit();

 private:
  void Discard() noexcept;

  std::string path_, temporary_;
  bool named_ = false;
  int fd_ = -1;
};

}  // namespace hearth::storage
