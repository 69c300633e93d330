#include "hearth/storage/local_files.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>

#include "hearth/base/error.h"
#include "hearth/base/fd.h"
#include "hearth/base/log.h"
#include "hearth/base/write_all.h"
#include "hearth/storage/temporary_name.h"
#include "hearth/storage/uri.h"

namespace hearth::storage {
namespace {

namespace fs = std::filesystem;

// Linux transfers almost 2 GiB at most in one read call.
constexpr size_t kMaxTransferBytes = size_t{1} << 30;

Fd OpenForReading(const std::string& path) {
  Fd fd(open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!fd.valid()) ThrowErrno(errno, fmt::format("cannot open {}", path));
  return fd;
}

std::string DirectoryOf(const fs::path& file) {
  return file.has_parent_path() ? file.parent_path().string() : ".";
}

void SyncDirectory(const std::string& file) {
  const Fd fd(open(DirectoryOf(file).c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  // Some file systems do not support opening or syncing a directory. The rename itself has
  // succeeded.
  if (!fd.valid() || fsync(fd.get()) == 0 || errno == EINVAL) return;
  log::Warning("Cannot sync the folder of {} ({}): a power failure may undo its rename", file,
               std::strerror(errno));
}

FileStatus LocalStatus(const struct stat& status, std::string uri) {
  const bool is_folder = S_ISDIR(status.st_mode);
  return {std::move(uri), is_folder, is_folder ? 0 : static_cast<uint64_t>(status.st_size),
          int64_t{status.st_mtim.tv_sec} * 1000 + status.st_mtim.tv_nsec / 1'000'000};
}

class LocalInput : public InputFile {
 public:
  explicit LocalInput(const std::string& path) : path_(path), fd_(OpenForReading(path)) {
    struct stat status {};
    if (fstat(fd_.get(), &status) != 0) ThrowErrno(errno, fmt::format("cannot read {}", path));
    if (S_ISDIR(status.st_mode)) ThrowErrno(EISDIR, fmt::format("cannot read {}", path));
    size_ = static_cast<uint64_t>(status.st_size);
  }

  // Repeats pread, which may return fewer bytes before the end of the file, such as on a network
  // file system.
  size_t ReadAt(uint64_t offset, void* data, size_t size) override {
    size_t done = 0;
    while (done < size) {
      const ssize_t count =
          pread(fd_.get(), static_cast<char*>(data) + done,
                std::min(size - done, kMaxTransferBytes), static_cast<off_t>(offset + done));
      if (count < 0 && errno == EINTR) continue;
      if (count < 0) ThrowErrno(errno, fmt::format("cannot read {}", path_));
      if (count == 0) break;
      done += static_cast<size_t>(count);
    }
    return done;
  }
  uint64_t size() const override { return size_; }

 private:
  const std::string path_;
  Fd fd_;
  uint64_t size_ = 0;
};

class LocalOutput : public OutputFile {
 public:
  explicit LocalOutput(std::string path) : path_(std::move(path)), temporary_(TemporaryFor(path_)) {
    struct stat there {};
    Require(stat(path_.c_str(), &there) != 0 || !S_ISDIR(there.st_mode),
            ErrorCode::kInvalidArgument, "cannot create {}: a folder has that name", path_);
    // If the process is killed, an unnamed file does not remain.
    fd_.Reset(open(DirectoryOf(path_).c_str(), O_TMPFILE | O_WRONLY | O_CLOEXEC, 0666));
    if (fd_.valid()) return;
    // O_TMPFILE may be unsupported. If open() failed for another reason, the next open() reports
    // it.
    named_ = true;
    fd_.Reset(open(temporary_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0666));
    if (!fd_.valid()) ThrowErrno(errno, fmt::format("cannot create {}", path_));
  }
  ~LocalOutput() override {
    if (fd_.valid() && named_) unlink(temporary_.c_str());
  }

  void Append(std::string_view bytes) override { WriteAll(fd_.get(), bytes, path_); }

  void Commit() override {
    // Synced before the file gets its name, so that the name does not refer to an empty file after
    // a power failure.
    if (fsync(fd_.get()) != 0) ThrowErrno(errno, fmt::format("cannot write {}", path_));
    if (!named_) {
      const std::string unnamed = fmt::format("/proc/self/fd/{}", fd_.get());
      // linkat cannot replace an existing file. So the file first gets its temporary name, and
      // rename replaces the existing file.
      if (linkat(AT_FDCWD, unnamed.c_str(), AT_FDCWD, temporary_.c_str(), AT_SYMLINK_FOLLOW) != 0) {
        ThrowErrno(errno, fmt::format("cannot give the new file {} its name", path_));
      }
      named_ = true;
    }
    if (rename(temporary_.c_str(), path_.c_str()) != 0) {
      ThrowErrno(errno, fmt::format("cannot rename {} to {}", temporary_, path_));
    }
    // The file now has its final name. Without the reset, the destructor would unlink the temporary
    // name.
    fd_.Reset();
    SyncDirectory(path_);
  }

 private:
  const std::string path_, temporary_;
  bool named_ = false;
  Fd fd_;
};

}  // namespace

std::optional<FileStatus> LocalFiles::Stat(const std::string& uri) {
  const std::string path = LocalPath(uri);
  struct stat status {};
  if (stat(path.c_str(), &status) == 0) return LocalStatus(status, uri);
  if (errno == ENOENT || errno == ENOTDIR) return std::nullopt;
  ThrowErrno(errno, fmt::format("cannot inspect {}", path));
}

std::vector<FileStatus> LocalFiles::List(const std::string& folder) {
  const std::string path = LocalPath(folder);
  std::error_code error;
  fs::directory_iterator entry(path, error);
  if (error.value() == ENOTDIR && Stat(folder)) ThrowErrno(EINVAL, path + " is not a folder");
  std::vector<FileStatus> found;
  for (; !error && entry != fs::directory_iterator(); entry.increment(error)) {
    const std::string name = entry->path().filename().string();
    struct stat status {};
    // A dangling link is listed with its own properties. Files that were deleted meanwhile are
    // skipped.
    if (stat(entry->path().c_str(), &status) != 0 && lstat(entry->path().c_str(), &status) != 0) {
      continue;
    }
    found.push_back(LocalStatus(status, Join(folder, name)));
  }
  if (error) ThrowErrno(error.value(), fmt::format("cannot list {}", path));
  std::ranges::sort(found, {}, &FileStatus::uri);
  return found;
}

std::unique_ptr<InputFile> LocalFiles::Open(const std::string& uri) {
  return std::make_unique<LocalInput>(LocalPath(uri));
}

std::unique_ptr<OutputFile> LocalFiles::Create(const std::string& uri) {
  return std::make_unique<LocalOutput>(LocalPath(uri));
}

void LocalFiles::Append(const std::string& uri, std::string_view bytes) {
  const std::string path = LocalPath(uri);
  // With O_APPEND, the kernel moves each write to the end, so several processes can append to one
  // file.
  const Fd fd(open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666));
  if (!fd.valid()) ThrowErrno(errno, fmt::format("cannot write {}", path));
  WriteAll(fd.get(), bytes, path);
}

void LocalFiles::Rename(const std::string& from, const std::string& to) {
  const std::string source = LocalPath(from), target = LocalPath(to);
  // Checked because rename(2) would replace an empty folder.
  const auto there = Stat(to);
  Require(!there || !there->is_folder, ErrorCode::kInvalidArgument,
          "cannot rename {} to {}: a folder has that name", source, target);
  if (rename(source.c_str(), target.c_str()) != 0) {
    ThrowErrno(errno, fmt::format("cannot rename {} to {}", source, target));
  }
}

bool LocalFiles::Delete(const std::string& uri, bool recursive) {
  const std::string path = LocalPath(uri);
  std::error_code error;
  // For a missing file, remove_all and remove report that nothing was removed, instead of an error.
  const bool removed = recursive ? fs::remove_all(path, error) > 0 : fs::remove(path, error);
  if (error.value() == ENOTEMPTY) {
    Throw(ErrorCode::kInvalidArgument, "cannot delete {}: the folder is not empty", path);
  }
  if (error) ThrowErrno(error.value(), fmt::format("cannot delete {}", path));
  return removed;
}

void LocalFiles::MakeFolders(const std::string& uri) {
  const std::string path = LocalPath(uri);
  std::error_code error;
  fs::create_directories(path, error);
  if (!error && !fs::is_directory(path)) error = std::make_error_code(std::errc::not_a_directory);
  if (error) ThrowErrno(error.value(), fmt::format("cannot create the folder {}", path));
}

std::string LocalFiles::ReadAll(const std::string& uri) {
  const std::string path = LocalPath(uri);
  const Fd fd = OpenForReading(path);
  struct stat status {};
  if (fstat(fd.get(), &status) != 0) ThrowErrno(errno, fmt::format("cannot read {}", path));
  std::string contents;
  size_t size = 0;
  // With one byte more than the size, the end is usually found without resizing. Pipes report no
  // size.
  contents.resize(static_cast<size_t>(std::max<off_t>(status.st_size, 4095)) + 1);
  for (;;) {
    if (size == contents.size()) contents.resize(2 * size);
    const ssize_t count =
        read(fd.get(), contents.data() + size, std::min(contents.size() - size, kMaxTransferBytes));
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) ThrowErrno(errno, fmt::format("cannot read {}", path));
    if (count == 0) break;
    size += static_cast<size_t>(count);
  }
  contents.resize(size);
  return contents;
}

}  // namespace hearth::storage
