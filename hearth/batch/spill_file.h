// Unnamed files to which batch images are appended and in which they stay mapped.
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

// One thread appends; what Append returned may be read by any while the file lives. The file is
// private to its user (0600), has no name from the start, and is gone with the process.
class SpillFile {
 public:
  explicit SpillFile(std::string directory, size_t segment_bytes = size_t{64} << 20);

  // Returns where the image is mapped, read-only. When the disk is full it goes on in the next of
  // the executor's local folders (local_folders.h); throws kResourceExhausted when all are full.
  std::span<const std::byte> Append(std::span<const std::byte> image);

  // Takes all mapped pages out of this process's resident memory. They stay in the system's page
  // cache while there is room and come back when they are read. Any thread, at any time.
  void DropPages();

  uint64_t bytes() const { return bytes_before_ + end_; }

 private:
  // Both return what errno says, 0 for success.
  int AddSegment(size_t least_bytes);
  int Write(std::span<const std::byte> image);
  void TakeRoom(uint64_t end);
  // Begins another file where none of these files is; false where there is no such folder.
  bool MoveOn();
  [[noreturn]] void ThrowFull(int error_number) const;

  std::vector<std::string> directories_;  // that were written to; the last one is
  Fd file_;                               // in it
  size_t segment_bytes_;
  // Images never cross a segment, so each needs one mapping that stays where it is.
  std::vector<Mapping> segments_;
  std::mutex mutex_;  // of the list, not of the bytes
  // Of the last file.
  uint64_t segment_begin_ = 0;
  uint64_t segment_end_ = 0;
  uint64_t end_ = 0;
  uint64_t taken_ = 0;         // the disk has given room up to here
  uint64_t bytes_before_ = 0;  // in the other files
};

}  // namespace hearth::batch
