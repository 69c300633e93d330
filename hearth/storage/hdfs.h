// HDFS by one of its two clients: libhdfs, which uses a cluster's own configuration and needs a
// JVM, or WebHDFS. HEARTH_HDFS=libhdfs or webhdfs chooses; otherwise (auto) it is libhdfs where
// that and a class path are found.
#pragma once

#include <memory>
#include <string_view>

#include "hearth/storage/file_system.h"
#include "hearth/storage/uri.h"

namespace hearth::storage {

// Of a scheme that OpenHdfs takes.
bool IsHdfs(std::string_view scheme);

// The file system of a URI's scheme and authority. Contacts no server; throws kInvalidArgument if
// nothing says where the cluster is. `without_jvm`: by WebHDFS, whatever is found and chosen.
std::unique_ptr<FileSystem> OpenHdfs(const RemoteUri& uri, bool without_jvm);

}  // namespace hearth::storage
