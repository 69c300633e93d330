// Selects the client for HDFS: libhdfs, which uses the cluster's configuration and needs a JVM, or
// WebHDFS. HEARTH_HDFS=libhdfs or webhdfs selects one. Otherwise (auto), libhdfs is used if the
// library and a complete class path are found.
#pragma once

#include <memory>
#include <string_view>

#include "hearth/storage/file_system.h"
#include "hearth/storage/uri.h"

namespace hearth::storage {

// Returns true for the schemes that OpenHdfs supports.
bool IsHdfs(std::string_view scheme);

// Returns the file system for a URI's scheme and authority. Does not contact a server. Throws
// kInvalidArgument if the cluster's address is not configured. With `without_jvm`, always uses
// WebHDFS.
std::unique_ptr<FileSystem> OpenHdfs(const RemoteUri& uri, bool without_jvm);

}  // namespace hearth::storage
