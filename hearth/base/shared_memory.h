// Memory that several processes map: an anonymous memfd, shared by inheritance or SCM_RIGHTS. Its
// size is sealed, so that no peer can shrink it under a mapping (which would raise SIGBUS).
#pragma once

#include <cstddef>
#include <string>

#include "hearth/base/fd.h"

namespace hearth {

// `bytes`, rounded up to whole pages.
size_t RoundUpToPages(size_t bytes);

// `name` is shown in /proc only. The memory is zeroed and allocated on first access. Close-on-exec
// is set: clear it if a child is to inherit the descriptor.
Fd CreateSharedMemory(const std::string& name, size_t bytes);

// Owns an address range that maps a file or memfd, and unmaps it. The descriptor may be closed
// afterwards. Callers must prevent data races on the bytes.
class Mapping {
 public:
  enum class Access { kRead, kReadWrite };

  Mapping() = default;
  // Throws kInvalidArgument if the file is shorter than offset + bytes. `offset` is page-aligned.
  Mapping(int fd, size_t offset, size_t bytes, Access access = Access::kReadWrite);
  // Maps a file that is still growing: it may be shorter than offset + bytes, but bytes beyond its
  // end must not be accessed before they are written (SIGBUS).
  static Mapping OfGrowingFile(int fd, size_t offset, size_t bytes);

  Mapping(Mapping&& other) noexcept;
  Mapping& operator=(Mapping&& other) noexcept;
  ~Mapping();

  std::byte* data() const { return data_; }
  size_t size() const { return size_; }
  bool valid() const { return data_ != nullptr; }

 private:
  void Map(int fd, size_t offset, size_t bytes, Access access);

  std::byte* data_ = nullptr;
  size_t size_ = 0;
};

}  // namespace hearth
