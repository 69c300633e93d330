#include "hearth/storage/libhdfs_library.h"

#include <dlfcn.h>

#include <algorithm>
#include <filesystem>
#include <vector>

#include "hearth/base/error.h"
#include "hearth/base/shared_library.h"
#include "hearth/storage/hadoop_conf.h"
#include "hearth/storage/uri.h"

namespace hearth::storage {
namespace {

namespace fs = std::filesystem;

bool IsFile(const std::string& path) {
  std::error_code ignored;
  return fs::is_regular_file(path, ignored);
}

// The file names of the jars on the class path.
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
    // As in Java, a folder that does not exist is ignored.
    std::error_code ignored;
    for (const auto& file : fs::directory_iterator(FolderOf(entry), ignored)) {
      names.push_back(file.path().filename().string());
    }
  }
  return names;
}

// Must be called before libhdfs is loaded, because libhdfs itself does not know the path of libjvm.
void LoadJvm() {
  const std::string home = Environment("JAVA_HOME");
  // The first folder is for Java 9 and later, the others for Java 8.
  for (const char* folder : {"/lib/server", "/jre/lib/amd64/server", "/jre/lib/aarch64/server"}) {
    const std::string file = home + folder + "/libjvm.so";
    if (!home.empty() && IsFile(file)) {
      const SharedLibrary jvm({file}, RTLD_GLOBAL);
      return;
    }
  }
}

LibHdfsLibrary LoadLibrary() {
  const std::string file = LocateLibHdfs();
  LoadJvm();
  const SharedLibrary library({file});
  Require(library.loaded(), ErrorCode::kUnimplemented,
          "cannot load {}: {}; set JAVA_HOME to the Java that Hadoop uses ('{}' now), or "
          "HEARTH_HDFS=webhdfs, which needs no Java",
          file, library.problem(), Environment("JAVA_HOME"));
  const auto load = [&library](const char* name, auto* function) {
    Require(library.Find(name, function), ErrorCode::kUnimplemented,
            "the libhdfs of this machine lacks {}; install Hadoop 2.2 or later", name);
  };
  LibHdfsLibrary hdfs;
  load("hdfsNewBuilder", &hdfs.new_builder);
  load("hdfsBuilderSetNameNode", &hdfs.set_name_node);
  load("hdfsBuilderConnect", &hdfs.connect);
  load("hdfsOpenFile", &hdfs.open);
  load("hdfsCloseFile", &hdfs.close);
  load("hdfsPread", &hdfs.pread);
  load("hdfsWrite", &hdfs.write);
  load("hdfsGetPathInfo", &hdfs.stat);
  load("hdfsListDirectory", &hdfs.list);
  load("hdfsFreeFileInfo", &hdfs.free_info);
  load("hdfsRename", &hdfs.rename);
  load("hdfsDelete", &hdfs.remove);
  load("hdfsCreateDirectory", &hdfs.make_folders);
  // Not available in every version.
  library.Find("hdfsGetLastExceptionRootCause", &hdfs.root_cause);
  return hdfs;
}

}  // namespace

std::string FindLibHdfs() {
  if (std::string named = Environment("HEARTH_LIBHDFS"); !named.empty()) {
    Require(IsFile(named), ErrorCode::kInvalidArgument,
            "HEARTH_LIBHDFS names {}, which is not a file on this host; set it to the path of "
            "libhdfs.so, or unset it",
            named);
    return named;
  }
  std::vector<std::string> files;
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
  Require(!file.empty(), ErrorCode::kUnimplemented,
          "libhdfs.so is neither in ARROW_LIBHDFS_DIR ('{}') nor in HADOOP_HOME/lib/native "
          "(HADOOP_HOME='{}'); set one of them or HEARTH_LIBHDFS, or HEARTH_HDFS=webhdfs, which "
          "needs no Java",
          Environment("ARROW_LIBHDFS_DIR"), Environment("HADOOP_HOME"));
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
  // hadoop-client-api, which Spark ships, contains no third-party classes.
  return has("commons-lang3-") ? "" : "commons-lang3";
}

const LibHdfsLibrary& LibHdfs() {
  // If loading throws, the next call tries again.
  static const LibHdfsLibrary library = LoadLibrary();
  return library;
}

}  // namespace hearth::storage
