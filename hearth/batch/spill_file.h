// Unnamed files to which batch images are appended and where they stay mapped.
#pragma once

#include <cstddef>
#include <cstdint>
#include <mutex>
#include <span>
#include <string>
#include <vector>

#include "hearth/base/fd.h"
#include "hearth/base/shared_memory.h"

namespace hearth::batch {

// A growing file of batch images. One thread appends; any thread may read the result of Append
// while this object lives. The file is private to its user (0600), has no name, and disappears with
// the process.
class SpillFile {
 public:
  explicit SpillFile(std::string directory, size_t segment_bytes = size_t{64} << 20);

  // Returns the read-only mapping of the image. When the disk is full, continues in the next of the
  // executor's local folders (local_folders.h); throws kResourceExhausted when all are full.
  std::span<const std::byte> Append(std::span<const std::byte> image);

  // Drops all mapped pages from this process's resident memory. They stay in the page cache as long
  // as memory allows, and are mapped again when read. Thread-safe.
  void DropPages();

  uint64_t bytes() const { return bytes_before_ + end_; }

 private:
  // Both functions return an errno value, 0 for success.
  int AddSegment(size_t least_bytes);
  int Write(std::span<const std::byte> image);
  void Preallocate(uint64_t end);
  // Creates another file in a folder not used yet; false if there is none.
  bool NextFolder();
  [[noreturn]] void ThrowFull(int error_number) const;

  std::vector<std::string> directories_;  // all folders used so far; file_ is in the last one
  Fd file_;                               // the current file
  size_t segment_bytes_;
  // An image never crosses segments, so one mapping contains all of it.
  std::vector<Mapping> segments_;
  std::mutex mutex_;  // guards segments_, not the bytes
  // Offsets in the current file.
  uint64_t segment_begin_ = 0;
  uint64_t segment_end_ = 0;
  uint64_t end_ = 0;
  uint64_t allocated_ = 0;     // blocks are preallocated up to here
  uint64_t bytes_before_ = 0;  // total size of earlier files
};

}  // namespace hearth::batch
