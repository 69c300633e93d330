// Selects a client for HDFS: libhdfs, which uses the cluster's configuration and needs a JVM, or
// WebHDFS. HEARTH_HDFS=libhdfs or webhdfs chooses; otherwise (auto) libhdfs is used if it and a
// class path are found.
#pragma once

#include <memory>
#include <string_view>

#include "hearth/storage/file_system.h"
#include "hearth/storage/uri.h"

namespace hearth::storage {

// True for schemes that OpenHdfs supports.
bool IsHdfs(std::string_view scheme);

// The file system for a URI's scheme and authority. Contacts no server; throws kInvalidArgument if
// the cluster's address is not configured. `without_jvm`: always WebHDFS.
std::unique_ptr<FileSystem> OpenHdfs(const RemoteUri& uri, bool without_jvm);

}  // namespace hearth::storage
