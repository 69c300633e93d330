// Hadoop's own C client, loaded when the first file is reached by it. Its few functions and the one
// structure that are used are declared here: a host with Hadoop has the library, not its header.
#pragma once

#include <cstdint>
#include <ctime>
#include <string>

namespace hearth::storage {

// As in hdfs.h of Hadoop 2.2 and later.
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
  char* (*root_cause)() = nullptr;  // of the last error of this thread; since Hadoop 3.0
};

// Where the library is: HEARTH_LIBHDFS (a file), ARROW_LIBHDFS_DIR, HADOOP_HOME/lib/native or
// HADOOP_HOME; "" where none has it. Throws kInvalidArgument where HEARTH_LIBHDFS names no file.
std::string FindLibHdfs();

// The same; throws kUnimplemented, which says what to set, where none has it.
std::string LocateLibHdfs();

// What the class path lacks, or "" if it has what libhdfs needs: without commons-lang3 the JVM
// ends this process by a signal. Reads CLASSPATH and the folders that it names by a '*'.
std::string MissingOnClassPath();

// Loads libjvm (JAVA_HOME) and libhdfs. Throws kUnimplemented, which says what to set. The class
// path must have been checked.
const LibHdfsLibrary& LibHdfs();

}  // namespace hearth::storage
