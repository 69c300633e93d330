// Where a file lies. Plain paths and file: URIs are local; other schemes are named in the error.
#pragma once

#include <string>
#include <string_view>

namespace hearth::storage {

// "hdfs" of "hdfs://host/path", "" of a plain path.
std::string_view Scheme(std::string_view uri);

// The local path of a plain path, file:/path, file:///path or file:relative. Throws kUnimplemented
// for any other scheme and kInvalidArgument for an empty path.
std::string LocalPath(std::string_view uri);

}  // namespace hearth::storage
