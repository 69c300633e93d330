#include "hearth/storage/libhdfs_library.h"

#include <dlfcn.h>

#include <algorithm>
#include <filesystem>
#include <vector>

#include "hearth/base/error.h"
#include "hearth/storage/hadoop_conf.h"
#include "hearth/storage/uri.h"

namespace hearth::storage {
namespace {

namespace fs = std::filesystem;

bool IsFile(const std::string& path) {
  std::error_code ignored;
  return fs::is_regular_file(path, ignored);
}

// The names of the jars on the class path.
std::vector<std::string> JarNames() {
  std::vector<std::string> names;
  const std::string path = Environment("CLASSPATH");
  for (size_t start = 0; start < path.size();) {
    const size_t end = std::min(path.find(':', start), path.size());
    const std::string entry = path.substr(start, end - start);
    start = end + 1;
    if (NameOf(entry) != "*") {
      if (IsFile(entry)) names.push_back(NameOf(entry));
      continue;
    }
    std::error_code ignored;
    for (const auto& file : fs::directory_iterator(FolderOf(entry), ignored)) {
      names.push_back(file.path().filename().string());
    }
  }
  return names;
}

// The JVM's library must be there before libhdfs, which does not say where it is.
void LoadJvm() {
  const std::string home = Environment("JAVA_HOME");
  for (const char* folder : {"/lib/server", "/jre/lib/amd64/server", "/jre/lib/aarch64/server"}) {
    const std::string file = home + folder + "/libjvm.so";
    if (!home.empty() && IsFile(file)) {
      dlopen(file.c_str(), RTLD_NOW | RTLD_GLOBAL);
      return;
    }
  }
}

template <typename Function>
void Load(void* library, const char* name, Function* function) {
  *function = reinterpret_cast<Function>(dlsym(library, name));
  Require(*function != nullptr, ErrorCode::kUnimplemented,
          "the libhdfs of this machine lacks {}; take that of Hadoop 2.2 or later", name);
}

LibHdfsLibrary LoadLibrary() {
  const std::string file = LocateLibHdfs();
  LoadJvm();
  void* library = dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) {
    Throw(ErrorCode::kUnimplemented,
          "cannot load {}: {}; set JAVA_HOME to the Java that Hadoop uses ('{}' now), or "
          "HEARTH_HDFS=webhdfs, which needs none",
          file, dlerror(), Environment("JAVA_HOME"));
  }
  LibHdfsLibrary hdfs;
  Load(library, "hdfsNewBuilder", &hdfs.new_builder);
  Load(library, "hdfsBuilderSetNameNode", &hdfs.set_name_node);
  Load(library, "hdfsBuilderConnect", &hdfs.connect);
  Load(library, "hdfsOpenFile", &hdfs.open);
  Load(library, "hdfsCloseFile", &hdfs.close);
  Load(library, "hdfsPread", &hdfs.pread);
  Load(library, "hdfsWrite", &hdfs.write);
  Load(library, "hdfsGetPathInfo", &hdfs.stat);
  Load(library, "hdfsListDirectory", &hdfs.list);
  Load(library, "hdfsFreeFileInfo", &hdfs.free_info);
  Load(library, "hdfsRename", &hdfs.rename);
  Load(library, "hdfsDelete", &hdfs.remove);
  Load(library, "hdfsCreateDirectory", &hdfs.make_folders);
  hdfs.root_cause = reinterpret_cast<char* (*)()>(dlsym(library, "hdfsGetLastExceptionRootCause"));
  return hdfs;
}

}  // namespace

std::string FindLibHdfs() {
  std::vector<std::string> files;
  if (const std::string told = Environment("HEARTH_LIBHDFS"); !told.empty()) files.push_back(told);
  for (const char* name : {"ARROW_LIBHDFS_DIR", "HADOOP_HOME"}) {
    const std::string folder = Environment(name);
    if (folder.empty()) continue;
    files.push_back(folder + "/lib/native/libhdfs.so");
    files.push_back(folder + "/libhdfs.so");
  }
  const auto found = std::ranges::find_if(files, IsFile);
  return found == files.end() ? "" : *found;
}

std::string LocateLibHdfs() {
  const std::string file = FindLibHdfs();
  Require(
      !file.empty(), ErrorCode::kUnimplemented,
      "libhdfs.so is in none of HEARTH_LIBHDFS ('{}'), ARROW_LIBHDFS_DIR ('{}') and "
      "HADOOP_HOME/lib/native (HADOOP_HOME='{}'); set one of them, or HEARTH_HDFS=webhdfs, which "
      "needs none",
      Environment("HEARTH_LIBHDFS"), Environment("ARROW_LIBHDFS_DIR"), Environment("HADOOP_HOME"));
  return file;
}

std::string MissingOnClassPath() {
  const std::vector<std::string> jars = JarNames();
  const auto has = [&](std::string_view start) {
    return std::ranges::any_of(jars, [&](const std::string& jar) {
      return jar.starts_with(start) && jar.ends_with(".jar");
    });
  };
  if (!has("hadoop-common-") && !has("hadoop-client-api-")) return "Hadoop's jars";
  return has("commons-lang3-") ? "" : "commons-lang3";
}

const LibHdfsLibrary& LibHdfs() {
  // A failure is thrown again by the next call, which tries again.
  static const LibHdfsLibrary library = LoadLibrary();
  return library;
}

}  // namespace hearth::storage
