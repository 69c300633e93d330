#pragma once

#include <cstdint>
#include <ctime>
#include <string>

namespace hearth::storage {

// hdfsFileInfo in hdfs.h of Hadoop 2.2 and later.
struct LibHdfsFileInfo {
  int kind;  // 'F' or 'D'
  char* name;
  std::time_t modified;
  int64_t size;
  int16_t replication;
  int64_t block_size;
  char *owner, *group;
  int16_t permissions;
  std::time_t accessed;
};

// Hadoop's C client, loaded on the first access. Its functions and LibHdfsFileInfo are declared
// here, because hosts with Hadoop have the library but not its header.
struct LibHdfsLibrary {
  void* (*new_builder)() = nullptr;
  void (*set_name_node)(void* builder, const char* uri) = nullptr;
  void* (*connect)(void* builder) = nullptr;
  void* (*open)(void* fs, const char* path, int flags, int buffer, short replication,
                int32_t block) = nullptr;
  int (*close)(void* fs, void* file) = nullptr;
  int32_t (*pread)(void* fs, void* file, int64_t offset, void* data, int32_t size) = nullptr;
  int32_t (*write)(void* fs, void* file, const void* data, int32_t size) = nullptr;
  LibHdfsFileInfo* (*stat)(void* fs, const char* path) = nullptr;
  LibHdfsFileInfo* (*list)(void* fs, const char* path, int* count) = nullptr;
  void (*free_info)(LibHdfsFileInfo* info, int count) = nullptr;
  int (*rename)(void* fs, const char* from, const char* to) = nullptr;
  int (*remove)(void* fs, const char* path, int recursive) = nullptr;
  int (*make_folders)(void* fs, const char* path) = nullptr;
  char* (*root_cause)() = nullptr;  // cause of this thread's last error; since Hadoop 3.0
};

// Returns the path of libhdfs: HEARTH_LIBHDFS, or the library in ARROW_LIBHDFS_DIR,
// HADOOP_HOME/lib/native or HADOOP_HOME. Returns "" if it is not found. Throws kInvalidArgument if
// HEARTH_LIBHDFS is not a file.
std::string FindLibHdfs();

// Like FindLibHdfs(), but throws kUnimplemented, naming the settings to change, if the library is
// not found.
std::string LocateLibHdfs();

// Returns the jars that are missing on the class path, or "" if none is. Without commons-lang3, the
// JVM would end this process with a signal. Reads CLASSPATH, and lists the folders of its entries
// that end in '*'.
std::string MissingOnClassPath();

// Loads libjvm (from JAVA_HOME) and libhdfs. Throws kUnimplemented, naming the settings to change.
// The caller must have checked the class path.
const LibHdfsLibrary& LibHdfs();

}  // namespace hearth::storage
