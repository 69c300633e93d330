#include "hearth/formats/mapped_file.h"

#include <fcntl.h>
#include <linux/magic.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/vfs.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <filesystem>
#include <map>
#include <mutex>

#include "hearth/base/error.h"
#include "hearth/base/host_name.h"

namespace hearth::formats {
namespace {

constexpr int64_t kXfs = 0x58465342, kZfs = 0x2fc12fc1, kBcachefs = 0xca451a4e;
// Types of file systems that are local. Others may be remote (NFS, SMB, FUSE, Ceph, Lustre), so
// copying their values to a local disk pays off.
constexpr std::array<int64_t, 11> kLocalFileSystems = {EXT4_SUPER_MAGIC,
                                                       BTRFS_SUPER_MAGIC,
                                                       F2FS_SUPER_MAGIC,
                                                       TMPFS_MAGIC,
                                                       RAMFS_MAGIC,
                                                       OVERLAYFS_SUPER_MAGIC,
                                                       SQUASHFS_MAGIC,
                                                       EROFS_SUPER_MAGIC_V1,
                                                       kXfs,
                                                       kZfs,
                                                       kBcachefs};

// All files mapped by this process. A file removes its entries when it is destroyed, so each entry
// is valid while the mutex is locked. Both maps contain plain pointers, because shared ones would
// keep every file mapped.
struct AllMapped {
  std::mutex mutex;
  std::map<const std::byte*, const MappedFile*> by_address;
  std::multimap<uint64_t, const MappedFile*> by_inode;
};

// Never destroyed: a thread may still read while the process exits.
AllMapped& Mapped() {
  static auto& all = *new AllMapped;
  return all;
}

FileIdentity IdentityOf(const struct stat& status) {
  return {static_cast<uint64_t>(status.st_size),
          int64_t{status.st_mtim.tv_sec} * 1'000'000'000 + status.st_mtim.tv_nsec,
          static_cast<uint64_t>(status.st_ino)};
}

FileIdentity IdentityOf(const Fd& file, const std::string& path) {
  struct stat status = {};
  if (::fstat(file.get(), &status) != 0)
    ThrowErrno(errno, fmt::format("cannot read the status of {}", path));
  return IdentityOf(status);
}

bool IsLocal(const Fd& file) {
  struct statfs system = {};
  if (::fstatfs(file.get(), &system) != 0) return false;
  return std::find(kLocalFileSystems.begin(), kLocalFileSystems.end(),
                   static_cast<int64_t>(system.f_type)) != kLocalFileSystems.end();
}

[[noreturn]] void ThrowChanged(const std::string& path, const FileIdentity& found,
                               const FileIdentity& wanted) {
  const std::string change = found.bytes != wanted.bytes ? fmt::format("has {} bytes instead of {}",
                                                                       found.bytes, wanted.bytes)
                             : found.inode != wanted.inode ? "was replaced by another file"
                                                           : "was modified meanwhile";
  Throw(ErrorCode::kDataLoss,
        "{} {} on host {}: a run reads large values directly from its input files, which must not "
        "change while it runs; restore the file, or start the run again with unchanged files",
        path, change, HostName());
}

// Checks the type before opening, because opening a device or pipe may block or have side effects.
// `attempt` is the start of the error message.
Fd OpenFile(const std::string& path, const std::string& attempt) {
  struct stat status = {};
  if (::stat(path.c_str(), &status) == 0) {
    Require(S_ISREG(status.st_mode), ErrorCode::kDataLoss, "{} is not a regular file", path);
    Fd file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
    if (file.valid()) return file;
  }
  ThrowErrno(errno, attempt);
}

}  // namespace

MappedFile::MappedFile(const Fd& file, const std::string& path)
    : path_(std::filesystem::absolute(path)),
      identity_(IdentityOf(file, path)),
      is_local_(IsLocal(file)),
      mapping_(file.get(), 0, identity_.bytes, Mapping::Access::kRead) {}

MappedFile::~MappedFile() {
  AllMapped& all = Mapped();
  const std::lock_guard lock(all.mutex);
  all.by_address.erase(data());
  std::erase_if(all.by_inode, [this](const auto& entry) { return entry.second == this; });
}

std::shared_ptr<const MappedFile> MappedFile::Open(const std::string& path) {
  const Fd file = OpenFile(path, fmt::format("cannot open {}", path));
  Require(IdentityOf(file, path).bytes > 0, ErrorCode::kDataLoss, "{} is empty", path);
  return Map(file, path);
}

std::shared_ptr<const MappedFile> MappedFile::Map(const Fd& file, const std::string& path) {
  const std::shared_ptr<const MappedFile> mapped(new MappedFile(file, path));
  AllMapped& all = Mapped();
  const std::lock_guard lock(all.mutex);
  all.by_address.emplace(mapped->data(), mapped.get());
  all.by_inode.emplace(mapped->identity_.inode, mapped.get());
  return mapped;
}

std::shared_ptr<const MappedFile> MappedFile::Find(const std::string& path,
                                                   const FileIdentity& identity) {
  {
    AllMapped& all = Mapped();
    const std::lock_guard lock(all.mutex);
    const auto [begin, end] = all.by_inode.equal_range(identity.inode);
    for (auto entry = begin; entry != end; ++entry) {
      const MappedFile& file = *entry->second;
      if (file.identity_ != identity || file.path_ != path) continue;
      // lock() returns null if the last owner is releasing the file at this moment.
      if (auto found = file.weak_from_this().lock()) return found;
    }
  }
  // Opens without the lock, because a remote file system may block. Two threads may then map one
  // file twice, which costs only address space.
  const Fd file =
      OpenFile(path, fmt::format("cannot open {} on host {}: the run reads large values directly "
                                 "from this file; restore the file, or start the run again",
                                 path, HostName()));
  const FileIdentity found = IdentityOf(file, path);
  if (found != identity) ThrowChanged(path, found, identity);
  return Map(file, path);
}

std::shared_ptr<const MappedFile> MappedFile::Around(std::string_view bytes) {
  const auto* begin = reinterpret_cast<const std::byte*>(bytes.data());
  AllMapped& all = Mapped();
  const std::lock_guard lock(all.mutex);
  // The last file that starts at or before the bytes is the only one that can contain them.
  const auto after = all.by_address.upper_bound(begin);
  if (after == all.by_address.begin()) return nullptr;
  const MappedFile& file = *std::prev(after)->second;
  return file.Has(bytes) ? file.weak_from_this().lock() : nullptr;
}

// Compares addresses as integers, because comparing pointers into different blocks is undefined.
bool MappedFile::Has(std::string_view bytes) const {
  const auto begin = reinterpret_cast<uintptr_t>(data());
  const auto at = reinterpret_cast<uintptr_t>(bytes.data());
  return at >= begin && at - begin <= size() && bytes.size() <= size() - (at - begin);
}

void MappedFile::CheckUnchanged() const {
  struct stat status = {};
  if (::stat(path_.c_str(), &status) != 0) return;
  const FileIdentity found = IdentityOf(status);
  // Another inode means that the path now belongs to another file; the mapping still refers to the
  // first one.
  if (found.inode == identity_.inode && found != identity_) ThrowChanged(path_, found, identity_);
}

void MappedFile::DropPages() const {
  // Only a hint; cannot fail for file mappings.
  (void)::madvise(mapping_.data(), mapping_.size(), MADV_DONTNEED);
}

}  // namespace hearth::formats
