#include "hearth/base/shared_memory.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

#include "hearth/base/error.h"

namespace hearth {
namespace {

int Protection(Mapping::Access access) {
  return access == Mapping::Access::kRead ? PROT_READ : PROT_READ | PROT_WRITE;
}

// mmap() accepts a range beyond the end of a file; the first access to it would raise SIGBUS.
void CheckRange(int fd, size_t offset, size_t bytes) {
  struct stat status = {};
  if (::fstat(fd, &status) != 0) {
    ThrowErrno(errno, fmt::format("cannot read the size of fd {}", fd));
  }
  const auto length = static_cast<size_t>(status.st_size);
  Require(bytes > 0 && offset <= length && bytes <= length - offset, ErrorCode::kInvalidArgument,
          "fd {} has {} bytes, too few to map {} bytes at offset {}", fd, length, bytes, offset);
}

}  // namespace

size_t RoundUpToPages(size_t bytes) {
  const auto page = static_cast<size_t>(::sysconf(_SC_PAGESIZE));
  return (bytes + page - 1) / page * page;
}

Fd CreateSharedMemory(const std::string& name, size_t bytes) {
  Fd fd(::memfd_create(name.c_str(), MFD_CLOEXEC | MFD_ALLOW_SEALING));
  if (!fd.valid()) ThrowErrno(errno, fmt::format("cannot create shared memory '{}'", name));
  if (::ftruncate(fd.get(), static_cast<off_t>(bytes)) != 0) {
    ThrowErrno(errno, fmt::format("cannot resize shared memory '{}' to {} bytes", name, bytes));
  }
  // F_SEAL_SEAL forbids further seals: a peer could otherwise add F_SEAL_FUTURE_WRITE.
  if (::fcntl(fd.get(), F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) != 0) {
    ThrowErrno(errno, fmt::format("cannot seal the size of shared memory '{}'", name));
  }
  return fd;
}

Mapping::Mapping(int fd, size_t offset, size_t bytes, Access access) {
  CheckRange(fd, offset, bytes);
  Map(fd, offset, bytes, access);
}

Mapping Mapping::OfGrowingFile(int fd, size_t offset, size_t bytes) {
  Mapping mapping;
  mapping.Map(fd, offset, bytes, Access::kRead);
  return mapping;
}

// Uses MAP_SHARED for reading, too: a private mapping may not show later writes of other processes.
void Mapping::Map(int fd, size_t offset, size_t bytes, Access access) {
  void* address =
      ::mmap(nullptr, bytes, Protection(access), MAP_SHARED, fd, static_cast<off_t>(offset));
  if (address == MAP_FAILED) {
    ThrowErrno(errno, fmt::format("cannot map {} bytes of fd {}", bytes, fd));
  }
  data_ = static_cast<std::byte*>(address);
  size_ = bytes;
}

Mapping::Mapping(Mapping&& other) noexcept
    : data_(std::exchange(other.data_, nullptr)), size_(std::exchange(other.size_, 0)) {}

// Swaps the mappings, so the destructor of `other` unmaps the previous range of this object.
Mapping& Mapping::operator=(Mapping&& other) noexcept {
  std::swap(data_, other.data_);
  std::swap(size_, other.size_);
  return *this;
}

Mapping::~Mapping() {
  if (data_ != nullptr) ::munmap(data_, size_);
}

}  // namespace hearth
