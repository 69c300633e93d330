#include "hearth/batch/spill_file.h"

#include <fcntl.h>
#include <fmt/ranges.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <utility>

#include "hearth/base/error.h"
#include "hearth/base/local_folders.h"
#include "hearth/batch/batch_image.h"

namespace hearth::batch {
namespace {

Fd OpenUnnamed(const std::string& directory) {
  Fd file(::open(directory.c_str(), O_TMPFILE | O_RDWR | O_CLOEXEC, 0600));
  // File systems without O_TMPFILE (overlay, NFS) return these errors.
  if (!file.valid() && (errno == EOPNOTSUPP || errno == EISDIR)) {
    std::string path = directory + "/hearth-spill-XXXXXX";
    file = Fd(::mkostemp(path.data(), O_CLOEXEC));
    if (file.valid()) ::unlink(path.c_str());
  }
  if (!file.valid())
    ThrowErrno(errno, fmt::format("cannot create a spill file in '{}'", directory));
  return file;
}

}  // namespace

SpillFile::SpillFile(std::string directory, size_t segment_bytes)
    : directories_{std::move(directory)},
      file_(OpenUnnamed(directories_.back())),
      segment_bytes_(RoundUpToPages(segment_bytes)) {}

void SpillFile::ThrowFull(int error_number) const {
  ThrowErrno(
      error_number,
      fmt::format("cannot write rows to the spill file in '{}', which holds {} bytes; free disk "
                  "space, set other directories (spill_dir, or spark.local.dir in Spark), or train "
                  "from Parquet files with -spill off, which spools no rows",
                  fmt::join(directories_, "', '"), bytes()));
}

bool SpillFile::NextFolder() {
  for (const std::string& folder : LocalFolders()) {
    if (std::find(directories_.begin(), directories_.end(), folder) != directories_.end()) continue;
    // The folder is recorded even if it turns out to be unwritable, so that each folder is tried
    // once.
    directories_.push_back(folder);
    try {
      file_ = OpenUnnamed(folder);  // the mappings keep the previous file alive
    } catch (const Error&) {        // an unwritable disk counts as full
      continue;
    }
    bytes_before_ += end_;
    segment_begin_ = segment_end_ = end_ = allocated_ = 0;
    return true;
  }
  return false;
}

// Writing to preallocated blocks is 25% faster. If preallocation fails (NFS, an almost full disk),
// each write allocates its own blocks.
void SpillFile::Preallocate(uint64_t end) {
  // Does not allocate the whole segment of 64 MiB: the disk is shared, and a small spool would
  // never use that space.
  constexpr uint64_t kAhead = 8 << 20;
  if (end <= allocated_) return;
  const uint64_t until = std::min(segment_end_, std::max(end, allocated_ + kAhead));
  const bool took = ::fallocate(file_.get(), 0, static_cast<off_t>(allocated_),
                                static_cast<off_t>(until - allocated_)) == 0;
  allocated_ = took ? until : segment_end_;
}

int SpillFile::AddSegment(size_t least_bytes) {
  const size_t bytes = std::max(segment_bytes_, RoundUpToPages(least_bytes));
  const uint64_t begin = segment_end_;
  // Changes only the size; blocks are allocated later, and a full disk is noticed then.
  if (::ftruncate(file_.get(), static_cast<off_t>(begin + bytes)) != 0) return errno;
  {
    // Locks only the vector, over which another thread may be iterating in DropPages().
    const std::lock_guard lock(mutex_);
    segments_.emplace_back(file_.get(), begin, bytes, Mapping::Access::kRead);
  }
  segment_begin_ = end_ = allocated_ = begin;
  segment_end_ = begin + bytes;
  return 0;
}

// Writes at `end_`, which Append() advances only after success, so bytes of a failed write are not
// part of any image.
int SpillFile::Write(std::span<const std::byte> image) {
  if (image.size() > segment_end_ - end_) {
    if (const int error = AddSegment(image.size()); error != 0) return error;
  }
  Preallocate(end_ + image.size());
  // Uses pwrite rather than the mapping, in which a full disk would raise SIGBUS.
  for (size_t done = 0; done < image.size();) {
    const ssize_t wrote = ::pwrite(file_.get(), image.data() + done, image.size() - done,
                                   static_cast<off_t>(end_ + done));
    if (wrote < 0 && errno == EINTR) continue;
    if (wrote <= 0) return wrote < 0 ? errno : ENOSPC;
    done += static_cast<size_t>(wrote);
  }
  return 0;
}

std::span<const std::byte> SpillFile::Append(std::span<const std::byte> image) {
  int first_error = 0;
  // Tries another disk after any error, not only ENOSPC. If no disk works, reports the first error,
  // because it is the cause of the others.
  for (int error = Write(image); error != 0; error = Write(image)) {
    if (first_error == 0) first_error = error;
    if (!NextFolder()) ThrowFull(first_error);
  }
  const std::byte* mapped = segments_.back().data() + (end_ - segment_begin_);
  // Images start at multiples of 64 bytes, as their readers require.
  end_ = std::min(segment_end_, end_ + AlignImage(image.size()));
  return {mapped, image.size()};
}

void SpillFile::DropPages() {
  const std::lock_guard lock(mutex_);
  // Only a hint; cannot fail for file mappings.
  for (const Mapping& segment : segments_) {
    (void)::madvise(segment.data(), segment.size(), MADV_DONTNEED);
  }
}

}  // namespace hearth::batch
