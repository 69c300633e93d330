#include "hearth/storage/file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <filesystem>

#include "hearth/base/error.h"
#include "hearth/storage/uri.h"

namespace hearth::storage {
namespace {

// One read or write call moves at most 2 GiB.
constexpr size_t kLargestCall = size_t{1} << 30;

int OpenForReading(const std::string& path) {
  const int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) ThrowErrno(errno, fmt::format("cannot open {}", path));
  return fd;
}

// Unique among the writers of this machine; a crashed writer's file is simply written again.
std::string TemporaryName(const std::string& path) {
  static std::atomic<int> counter{0};
  return fmt::format("{}.{}-{}.tmp", path, getpid(), counter++);
}

std::string DirectoryOf(const std::filesystem::path& file) {
  return file.has_parent_path() ? file.parent_path().string() : ".";
}

void SyncDirectory(const std::string& file) {
  const int fd = open(DirectoryOf(file).c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (fd < 0) return;  // the rename is done; some file systems do not let directories be opened
  fsync(fd);
  close(fd);
}

}  // namespace

std::string ReadFile(const std::string& uri) {
  const std::string path = LocalPath(uri);
  const int fd = OpenForReading(path);
  std::string contents;
  try {
    struct stat status {};
    if (fstat(fd, &status) != 0) ThrowErrno(errno, fmt::format("cannot read {}", path));
    size_t size = 0;
    // One byte more than the file holds shows its end without another round; pipes tell no size.
    contents.resize(static_cast<size_t>(std::max<off_t>(status.st_size, 4095)) + 1);
    for (;;) {
      if (size == contents.size()) contents.resize(2 * size);
      const ssize_t count =
          read(fd, contents.data() + size, std::min(contents.size() - size, kLargestCall));
      if (count < 0 && errno == EINTR) continue;
      if (count < 0) ThrowErrno(errno, fmt::format("cannot read {}", path));
      if (count == 0) break;
      size += static_cast<size_t>(count);
    }
    contents.resize(size);
  } catch (...) {
    close(fd);
    throw;
  }
  close(fd);
  return contents;
}

AtomicFile::AtomicFile(const std::string& uri)
    : path_(LocalPath(uri)), temporary_(TemporaryName(path_)) {
  // Without a name there is nothing to be left by a process that is killed.
  fd_ = open(DirectoryOf(path_).c_str(), O_TMPFILE | O_WRONLY | O_CLOEXEC, 0666);
  if (fd_ >= 0) return;
  named_ = true;  // the file system cannot; whatever else is wrong, this call tells
  fd_ = open(temporary_.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0666);
  if (fd_ < 0) ThrowErrno(errno, fmt::format("cannot create {}", path_));
}

AtomicFile::~AtomicFile() { Discard(); }

void AtomicFile::Append(std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t count = write(fd_, bytes.data(), std::min(bytes.size(), kLargestCall));
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) ThrowErrno(errno, fmt::format("cannot write {}", path_));
    bytes.remove_prefix(static_cast<size_t>(count));
  }
}

void AtomicFile::Commit() {
  if (fsync(fd_) != 0) ThrowErrno(errno, fmt::format("cannot write {}", path_));
  if (!named_) {
    const std::string unnamed = fmt::format("/proc/self/fd/{}", fd_);
    if (linkat(AT_FDCWD, unnamed.c_str(), AT_FDCWD, temporary_.c_str(), AT_SYMLINK_FOLLOW) != 0) {
      ThrowErrno(errno, fmt::format("cannot name {}", path_));
    }
    named_ = true;
  }
  if (rename(temporary_.c_str(), path_.c_str()) != 0) {
    ThrowErrno(errno, fmt::format("cannot rename {} to {}", temporary_, path_));
  }
  close(fd_);
  fd_ = -1;
  SyncDirectory(path_);
}

void AtomicFile::Discard() noexcept {
  if (fd_ < 0) return;
  close(fd_);
  if (named_) unlink(temporary_.c_str());
  fd_ = -1;
}

}  // namespace hearth::storage
