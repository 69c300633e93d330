// A fake libhdfs for tests, whose files are in a local folder; libhdfs_test.cc loads it. Like the
// real library, it reports failures through errno and the text of a Java exception.
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <list>
#include <string>
#include <vector>

#include "hearth/storage/libhdfs_library.h"

namespace {

namespace fs = std::filesystem;
using hearth::storage::LibHdfsFileInfo;

thread_local std::string cause;

struct Connection {
  std::string folder;
};

std::string Local(void* connection, const char* path) {
  return static_cast<Connection*>(connection)->folder + path;
}

bool Failed(int error_number, const char* exception, const std::string& message) {
  cause = std::string(exception) + ": " + message;
  errno = error_number;
  return true;
}

void Fill(const std::string& file, LibHdfsFileInfo* info) {
  struct stat status {};
  stat(file.c_str(), &status);
  *info = {};
  info->kind = S_ISDIR(status.st_mode) ? 'D' : 'F';
  info->name = strdup(file.c_str());
  info->size = status.st_size;
  info->modified = status.st_mtime;
}

}  // namespace

#define EXPORT __attribute__((visibility("default")))

extern "C" {

// Like connections of the real library, these are never closed and exist until the process ends.
EXPORT void* hdfsNewBuilder() {
  static auto& all = *new std::list<Connection>;
  return &all.emplace_back();
}
EXPORT void hdfsBuilderSetNameNode(void* builder, const char*) {
  static_cast<Connection*>(builder)->folder = std::getenv("STAND_IN_LIBHDFS_FOLDER");
}
EXPORT void* hdfsBuilderConnect(void* builder) {
  std::signal(SIGINT, [](int) { _exit(130); });  // like a starting JVM
  return builder;
}

EXPORT void* hdfsOpenFile(void* connection, const char* path, int flags, int, short, int32_t) {
  const std::string file = Local(connection, path);
  if (file.find("forbidden") != std::string::npos) {
    Failed(EACCES, "org.apache.hadoop.security.AccessControlException",
           "Permission denied: user=alice\n\tat org.apache.hadoop.X");
    return nullptr;
  }
  if (file.find("unknown to Kerberos") != std::string::npos) {
    Failed(255, "org.apache.hadoop.security.AccessControlException",
           "Client cannot authenticate via:[TOKEN, KERBEROS]");
    return nullptr;
  }
  if (file.find("too late") != std::string::npos) {
    Failed(255, "org.ietf.jgss.GSSException", "No valid credentials provided");
    return nullptr;
  }
  if (file.find("strange") != std::string::npos) {
    Failed(255, "NoMatchingRule", "No rules applied to alice@HERE");
    return nullptr;
  }
  if ((flags & O_ACCMODE) == O_WRONLY && (flags & O_APPEND) == 0) flags |= O_CREAT | O_TRUNC;
  if ((flags & O_ACCMODE) == O_WRONLY) {
    std::error_code ignored;
    fs::create_directories(fs::path(file).parent_path(), ignored);
  }
  const int fd = open(file.c_str(), flags | O_CLOEXEC, 0644);
  if (fd < 0) Failed(errno, "java.io.FileNotFoundException", file);
  return fd < 0 ? nullptr : new int(fd);
}
EXPORT int hdfsCloseFile(void*, void* file) {
  close(*static_cast<int*>(file));
  delete static_cast<int*>(file);
  return 0;
}
EXPORT int32_t hdfsPread(void*, void* file, int64_t offset, void* data, int32_t size) {
  // Returns fewer bytes than requested, which the real library may also do.
  return static_cast<int32_t>(pread(*static_cast<int*>(file), data, (size + 1) / 2, offset));
}
EXPORT int32_t hdfsWrite(void*, void* file, const void* data, int32_t size) {
  return static_cast<int32_t>(write(*static_cast<int*>(file), data, (size + 1) / 2));
}
EXPORT LibHdfsFileInfo* hdfsGetPathInfo(void* connection, const char* path) {
  const std::string file = Local(connection, path);
  if (!fs::exists(file)) {
    Failed(ENOENT, "java.io.FileNotFoundException", "File does not exist: " + file);
    return nullptr;
  }
  auto* info = new LibHdfsFileInfo[1];
  Fill(file, info);
  return info;
}
EXPORT LibHdfsFileInfo* hdfsListDirectory(void* connection, const char* path, int* count) {
  const std::string folder = Local(connection, path);
  *count = 0;
  if (!fs::exists(folder)) {
    Failed(ENOENT, "java.io.FileNotFoundException", "File " + folder + " does not exist.");
    return nullptr;
  }
  std::vector<std::string> files;
  for (const auto& entry : fs::directory_iterator(folder)) files.push_back(entry.path());
  errno = 0;
  if (files.empty()) return nullptr;
  auto* infos = new LibHdfsFileInfo[files.size()];
  for (size_t i = 0; i < files.size(); ++i) Fill(files[i], &infos[i]);
  *count = static_cast<int>(files.size());
  return infos;
}
EXPORT void hdfsFreeFileInfo(LibHdfsFileInfo* infos, int count) {
  for (int i = 0; i < count; ++i) free(infos[i].name);
  delete[] infos;
}
EXPORT int hdfsRename(void* connection, const char* from, const char* to) {
  const std::string target = Local(connection, to);
  cause.clear();
  if (!fs::exists(target) && rename(Local(connection, from).c_str(), target.c_str()) == 0) return 0;
  errno = EIO;
  return -1;
}
EXPORT int hdfsDelete(void* connection, const char* path, int recursive) {
  const std::string file = Local(connection, path);
  if (recursive == 0 && fs::is_directory(file) && !fs::is_empty(file)) {
    Failed(EIO, "org.apache.hadoop.fs.PathIsNotEmptyDirectoryException",
           "`" + file + " is non empty': Directory is not empty");
    return -1;
  }
  return fs::remove_all(file) > 0 ? 0 : -1;
}
EXPORT int hdfsCreateDirectory(void* connection, const char* path) {
  std::error_code error;
  const std::string folder = Local(connection, path);
  fs::create_directories(folder, error);
  if (!error && fs::is_directory(folder)) return 0;
  Failed(ENOTDIR, "org.apache.hadoop.fs.ParentNotDirectoryException", folder);
  return -1;
}
EXPORT char* hdfsGetLastExceptionRootCause() { return cause.data(); }

}  // extern "C"
