// Paths and URIs of files. Plain paths and file: URIs are local. Others name a file system by their
// scheme and possibly a host, as in hdfs://namenode:8020/path.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace hearth::storage {

// Returns "hdfs" for "hdfs://host/path", and "" for a plain path.
std::string_view Scheme(std::string_view uri);

// True for a plain path and a file: URI.
bool IsLocal(std::string_view uri);

// Returns the local path for a plain path, file:/path, file:///path or file:relative. Throws
// kUnimplemented for any other scheme, and kInvalidArgument for an empty path.
std::string LocalPath(std::string_view uri);

// Like LocalPath(), but returns nullopt for a remote URI. Unlike in IsLocal(), "a:b" is a plain
// path: schemes other than file require "://".
std::optional<std::string> LocalPathOf(const std::string& uri);

// The components of scheme://authority/path. The path begins with '/' and has no trailing '/' and
// no components that are "." or empty. ParseRemote throws kInvalidArgument if a component is ".."
// or contains a zero byte. It also throws if the authority contains a user or password, which would
// appear in errors and logs.
struct RemoteUri {
  std::string scheme;
  std::string authority;  // "" of hdfs:///path
  std::string path;

  std::string prefix() const { return scheme + "://" + authority; }
  std::string text() const { return prefix() + path; }
};
RemoteUri ParseRemote(std::string_view uri);

// Returns the path of `to`, the new name of `from`. Throws kInvalidArgument unless both
// have the same scheme and host, because renames cannot cross file systems.
std::string PathOnSame(std::string_view from, std::string_view to);

// Replaces the user and password in each scheme://user:password@host with '***'.
std::string WithoutPassword(std::string text);

// The offset of the path in scheme://authority/path; 0 for a text without "://".
size_t PathStart(std::string_view uri);

// The parts of a path or URI before and after the last '/'. The folder of a name without '/' is "",
// and the folder of /name is "/".
std::string FolderOf(std::string_view uri);
std::string NameOf(std::string_view uri);
// Returns the path of `name` in `folder`; `name` itself if the folder is "".
std::string Join(std::string_view folder, std::string_view name);

}  // namespace hearth::storage
