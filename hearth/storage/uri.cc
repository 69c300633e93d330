#include "hearth/storage/uri.h"

#include <algorithm>
#include <cctype>

#include "hearth/base/error.h"

namespace hearth::storage {
namespace {

// Returns one spelling for each file, because files are compared by their URIs. Rejects "..",
// because libcurl would resolve it in the URL, and errors would then name a path other than the
// requested one.
std::string CleanPath(std::string_view path, std::string_view uri) {
  Require(path.find('\0') == path.npos, ErrorCode::kInvalidArgument,
          "the file name '{}' contains a zero byte", uri.substr(0, uri.find('\0')));
  std::string clean;
  while (!path.empty()) {
    const size_t end = std::min(path.find('/'), path.size());
    const std::string_view part = path.substr(0, end);
    Require(part != "..", ErrorCode::kInvalidArgument, "{} contains '..'; write the full path",
            uri);
    if (!part.empty() && part != ".") clean.append("/").append(part);
    path.remove_prefix(std::min(end + 1, path.size()));
  }
  return clean.empty() ? "/" : clean;
}

}  // namespace

std::string_view Scheme(std::string_view uri) {
  const size_t colon = uri.find(':');
  if (colon == 0 || colon == uri.npos) return {};
  const std::string_view scheme = uri.substr(0, colon);
  // RFC 3986, section 3.1. Without this check, "12:30.txt" would be a URI with the scheme "12".
  const bool valid = std::isalpha(static_cast<unsigned char>(scheme[0])) &&
                     std::all_of(scheme.begin(), scheme.end(), [](unsigned char c) {
                       return std::isalnum(c) || c == '+' || c == '-' || c == '.';
                     });
  return valid ? scheme : std::string_view();
}

size_t PathStart(std::string_view uri) {
  const size_t scheme = Scheme(uri).size();
  if (scheme == 0 || !uri.substr(scheme).starts_with("://")) return 0;
  return std::min(uri.find('/', scheme + 3), uri.size());
}

bool IsLocal(std::string_view uri) {
  const std::string_view scheme = Scheme(uri);
  return scheme.empty() || scheme == "file";
}

std::string LocalPath(std::string_view uri) {
  std::string_view path = uri;
  if (!Scheme(uri).empty()) {
    Require(
        IsLocal(uri), ErrorCode::kUnimplemented,
        "cannot open {}: this needs a local file, and {}: is not local; copy it to a local path",
        uri, Scheme(uri));
    path.remove_prefix(Scheme(uri).size() + 1);
    // In file://host/path, only an empty host and localhost are local.
    if (path.starts_with("//localhost/")) path.remove_prefix(11);
    // file:///path and file:/path name the same file.
    if (path.starts_with("///")) path.remove_prefix(2);
    Require(!path.starts_with("//"), ErrorCode::kInvalidArgument,
            "{} names a host; write file:///path for a local file", uri);
  }
  Require(!path.empty(), ErrorCode::kInvalidArgument, "the file name in '{}' is empty", uri);
  return std::string(path);
}

// Looks for "://" instead of calling Scheme(), because a file may have a name such as "a:b".
std::optional<std::string> LocalPathOf(const std::string& uri) {
  if (uri.find("://") == uri.npos && !uri.starts_with("file:")) return uri;
  if (IsLocal(uri)) return LocalPath(uri);
  return std::nullopt;
}

RemoteUri ParseRemote(std::string_view uri) {
  const size_t start = PathStart(uri);
  Require(start > 0, ErrorCode::kInvalidArgument,
          "'{}' is not the URI of a file; write {}:///path or {}://host:port/path", uri,
          Scheme(uri).empty() ? "hdfs" : Scheme(uri), Scheme(uri).empty() ? "hdfs" : Scheme(uri));
  const std::string_view scheme = Scheme(uri);
  Require(
      uri.substr(0, start).find('@') == uri.npos, ErrorCode::kInvalidArgument,
      "{}: URIs of files must not contain a user or password: leave them out, and name the user by "
      "HADOOP_USER_NAME",
      WithoutPassword(std::string(uri)));
  const std::string_view authority = uri.substr(scheme.size() + 3, start - scheme.size() - 3);
  return {std::string(scheme), std::string(authority), CleanPath(uri.substr(start), uri)};
}

std::string PathOnSame(std::string_view from, std::string_view to) {
  const RemoteUri source = ParseRemote(from), target = ParseRemote(to);
  Require(source.prefix() == target.prefix(), ErrorCode::kInvalidArgument,
          "cannot rename {} to {}: they are on different file systems; copy the file, or write "
          "both with the "
          "same scheme and host",
          from, to);
  return target.path;
}

std::string WithoutPassword(std::string text) {
  for (size_t at = 0; (at = text.find("://", at)) != text.npos;) {
    at += 3;
    const size_t end = std::min(text.find_first_of("/?# \t\r\n'\"", at), text.size());
    // Searches for the last '@', because a password may contain others.
    const size_t mark = text.substr(at, end - at).rfind('@');
    const bool has_password = mark != text.npos && text.substr(at, mark).find(':') != text.npos;
    if (has_password) text.replace(at, mark, "***");
  }
  return text;
}

std::string FolderOf(std::string_view uri) {
  const size_t start = PathStart(uri);
  const size_t slash = uri.rfind('/');
  if (slash == uri.npos || slash < start) return std::string(uri.substr(0, start));
  return std::string(uri.substr(0, slash == start ? slash + 1 : slash));
}

std::string NameOf(std::string_view uri) {
  const size_t start = PathStart(uri);
  const size_t slash = uri.rfind('/');
  // file:name is a relative path without a folder.
  if (slash == uri.npos && Scheme(uri) == "file") return std::string(uri.substr(5));
  return std::string(slash == uri.npos || slash < start ? uri.substr(start)
                                                        : uri.substr(slash + 1));
}

std::string Join(std::string_view folder, std::string_view name) {
  if (folder.empty()) return std::string(name);
  std::string joined(folder);
  if (!joined.ends_with('/')) joined += '/';
  return joined.append(name);
}

}  // namespace hearth::storage
