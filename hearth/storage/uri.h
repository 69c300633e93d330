// Paths and URIs of files. Plain paths and file: URIs are local; others name a file system by their
// scheme and, as in hdfs://namenode:8020/path, a host.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace hearth::storage {

// "hdfs" of "hdfs://host/path", "" of a plain path.
std::string_view Scheme(std::string_view uri);

// True if LocalPath accepts it.
bool IsLocal(std::string_view uri);

// The local path of a plain path, file:/path, file:///path or file:relative. Throws kUnimplemented
// for any other scheme and kInvalidArgument for an empty path.
std::string LocalPath(std::string_view uri);

// The same; nullopt if it is remote. Unlike IsLocal, "a:b" is a plain path: schemes other than
// file have their slashes.
std::optional<std::string> LocalPathOf(const std::string& uri);

// Components of scheme://authority/path; the path begins with '/' and has no "." or empty component
// and no trailing '/'. Throws kInvalidArgument if a component is ".." or contains a zero byte, or
// if the authority contains a user or password, which would appear in errors and logs.
struct RemoteUri {
  std::string scheme;
  std::string authority;  // "" of hdfs:///path
  std::string path;

  std::string prefix() const { return scheme + "://" + authority; }
  std::string text() const { return prefix() + path; }
};
RemoteUri ParseRemote(std::string_view uri);

// The path of `to`, which must have the scheme and host of `from`, as renames cannot cross file
// systems. Throws kInvalidArgument.
std::string PathOnSame(std::string_view from, std::string_view to);

// `text` with '***' for the user and password in each scheme://user:password@host.
std::string WithoutPassword(std::string text);

// Offset of the path in scheme://authority/path; 0 without an authority.
size_t PathStart(std::string_view uri);

// The parts before and after the last '/', for paths and URIs of every scheme. The folder of a name
// without '/' is "", that of /name is "/".
std::string FolderOf(std::string_view uri);
std::string NameOf(std::string_view uri);
// `name` inside `folder`; `name` alone if the folder is "".
std::string Join(std::string_view folder, std::string_view name);

}  // namespace hearth::storage
