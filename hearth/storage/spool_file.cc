#include "hearth/storage/spool_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <vector>

#include "hearth/base/error.h"
#include "hearth/base/local_folders.h"
#include "hearth/base/write_all.h"
#include "hearth/storage/hadoop_conf.h"

namespace hearth::storage {
namespace {

// Spark's local folders are first, because they are on large disks, while /tmp is often small or in
// memory.
std::vector<std::string> Folders() {
  std::vector<std::string> folders = LocalFolders();
  if (const std::string variable = Environment("TMPDIR"); !variable.empty())
    folders.push_back(variable);
  folders.emplace_back("/tmp");
  return folders;
}

// An unnamed file need not be removed: the kernel frees it when its last descriptor is closed.
int OpenUnnamed(const std::string& folder) {
  const int fd = open(folder.c_str(), O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
  if (fd >= 0) return fd;
  std::string name = folder + "/hearth_XXXXXX";  // fallback for file systems without O_TMPFILE
  const int named = mkostemp(name.data(), O_CLOEXEC);
  if (named >= 0) unlink(name.c_str());
  return named;
}

}  // namespace

SpoolFile::SpoolFile() {
  for (const std::string& folder : Folders()) {
    fd_.Reset(OpenUnnamed(folder));
    folder_ = folder;
    if (fd_.valid()) return;
  }
  ThrowErrno(errno, fmt::format("cannot create a temporary file in {}; set TMPDIR", folder_));
}

void SpoolFile::Append(std::string_view bytes) {
  WriteAll(fd_.get(), bytes, "the spool file in " + folder_);
  size_ += bytes.size();
}

}  // namespace hearth::storage
