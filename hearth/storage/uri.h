// Where a file lies. Plain paths and file: URIs are local; others name a file system by their
// scheme and, as hdfs://namenode:8020/path does, a host.
#pragma once

#include <string>
#include <string_view>

namespace hearth::storage {

// "hdfs" of "hdfs://host/path", "" of a plain path.
std::string_view Scheme(std::string_view uri);

// Whether LocalPath takes it.
bool IsLocal(std::string_view uri);

// The local path of a plain path, file:/path, file:///path or file:relative. Throws kUnimplemented
// for any other scheme and kInvalidArgument for an empty path.
std::string LocalPath(std::string_view uri);

// The parts of scheme://authority/path; the path begins with '/', has no "." or empty part and no
// '/' at its end. Throws kInvalidArgument where a part is ".." or holds a zero byte, and where the
// authority holds a user or a password, which would then stand in errors and logs.
struct RemoteUri {
  std::string scheme;
  std::string authority;  // "" of hdfs:///path
  std::string path;

  std::string prefix() const { return scheme + "://" + authority; }
  std::string text() const { return prefix() + path; }
};
RemoteUri ParseRemote(std::string_view uri);

// The path of `to`, which must be of the same scheme and host as `from`: a rename to another one
// would end somewhere else. Throws kInvalidArgument.
std::string PathOnSame(std::string_view from, std::string_view to);

// `text` with '***' for what stands before the host in each scheme://user:password@host.
std::string WithoutPassword(std::string text);

// Where the path begins in scheme://authority/path; 0 of whatever has no authority.
size_t PathStart(std::string_view uri);

// What precedes and what follows the last '/'; works on paths and URIs of every scheme. The
// folder of a name without one is "", that of /name is "/".
std::string FolderOf(std::string_view uri);
std::string NameOf(std::string_view uri);
// `name` inside `folder`; `name` alone where the folder is "".
std::string Join(std::string_view folder, std::string_view name);

}  // namespace hearth::storage
