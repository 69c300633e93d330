#include "hearth/storage/file_system.h"

#include <fnmatch.h>

#include <algorithm>
#include <exception>
#include <map>
#include <mutex>
#include <utility>

#include "hearth/base/error.h"
#include "hearth/base/log.h"
#include "hearth/storage/hdfs.h"
#include "hearth/storage/local_files.h"
#include "hearth/storage/uri.h"

namespace hearth::storage {
namespace {

// The step by which ReadAll's buffer grows. It limits the memory that a wrong size from a server
// can cost.
constexpr uint64_t kReadBytes = 64 << 20;

bool HasPattern(std::string_view uri) {
  return uri.find_first_of("*?[", PathStart(uri)) != uri.npos;
}

// Adds the files and folders in `folder` whose names match `pattern`. As in a shell, adds nothing
// if `folder` does not exist or is a file: the first component of `*/part-*` may also match files.
void AddMatches(const std::string& folder, const std::string& pattern,
                std::vector<std::string>* found) {
  FileSystem& files = For(folder.empty() ? "." : folder);
  const auto status = files.Stat(folder.empty() ? "." : folder);
  if (!status || !status->is_folder) return;
  for (const FileStatus& each : files.List(folder.empty() ? "." : folder)) {
    const std::string name = NameOf(each.uri);
    if (fnmatch(pattern.c_str(), name.c_str(), FNM_PERIOD) == 0) {
      found->push_back(Join(folder, name));
    }
  }
}

}  // namespace

void FileSystem::DeleteQuietly(const std::string& uri) noexcept {
  try {
    // Not recursive, because callers only delete temporary files that they have created.
    Delete(uri, /*recursive=*/false);
  } catch (const std::exception& error) {
    log::Warning("the temporary file {} cannot be deleted: {}", uri, error.what());
  }
}

std::string FileSystem::ReadAll(const std::string& uri) {
  const auto file = Open(uri);
  // Grows as data arrives, because the size that a server reports is not trusted for an allocation.
  std::string contents;
  while (contents.size() < file->size()) {
    const size_t done = contents.size();
    contents.resize(done + std::min<uint64_t>(file->size() - done, kReadBytes));
    const size_t count = file->ReadAt(done, contents.data() + done, contents.size() - done);
    contents.resize(done + count);
    if (count == 0) break;
  }
  return contents;
}

FileSystem& For(std::string_view uri, bool without_jvm) {
  // Never destroyed, because other threads may still read files when the process ends.
  static LocalFiles& local = *new LocalFiles;
  if (IsLocal(uri)) return local;
  Require(IsHdfs(Scheme(uri)), ErrorCode::kUnimplemented,
          "cannot open {}: the scheme {}: is not supported; give a local path, hdfs:, viewfs:, "
          "webhdfs: or swebhdfs:",
          WithoutPassword(std::string(uri)), Scheme(uri));
  // Never destroyed, like `local`.
  static std::mutex& mutex = *new std::mutex;
  static auto& opened = *new std::map<std::pair<std::string, bool>, std::unique_ptr<FileSystem>>;
  const RemoteUri parts = ParseRemote(uri);
  const std::lock_guard lock(mutex);
  // There is one file system for each scheme and host, so connections, tokens and the JVM are
  // shared. The mutex is held while a file system is constructed, which contacts no NameNode.
  auto& system = opened[{parts.prefix(), without_jvm}];
  if (!system) system = OpenHdfs(parts, without_jvm);
  return *system;
}

std::vector<std::string> Glob(const std::string& pattern) {
  if (!HasPattern(pattern)) {
    if (!For(pattern).Stat(pattern)) return {};
    return {pattern};
  }
  const std::string parent = FolderOf(pattern), name = NameOf(pattern);
  // A trailing slash, as in "*/", is ignored.
  if (name.empty()) return Glob(parent);
  std::vector<std::string> folders = HasPattern(parent) ? Glob(parent) : std::vector{parent};
  std::vector<std::string> found;
  for (const std::string& folder : folders) {
    if (HasPattern(name)) {
      AddMatches(folder, name, &found);
    } else if (const std::string file = Join(folder, name); For(file).Stat(file)) {
      found.push_back(file);
    }
  }
  return found;
}

}  // namespace hearth::storage
