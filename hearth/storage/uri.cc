#include "hearth/storage/uri.h"

#include <algorithm>
#include <cctype>

#include "hearth/base/error.h"

namespace hearth::storage {

std::string_view Scheme(std::string_view uri) {
  const size_t colon = uri.find(':');
  if (colon == 0 || colon == uri.npos) return {};
  const std::string_view scheme = uri.substr(0, colon);
  const bool valid = std::isalpha(static_cast<unsigned char>(scheme[0])) &&
                     std::all_of(scheme.begin(), scheme.end(), [](unsigned char c) {
                       return std::isalnum(c) || c == '+' || c == '-' || c == '.';
                     });
  return valid ? scheme : std::string_view();
}

std::string LocalPath(std::string_view uri) {
  const std::string_view scheme = Scheme(uri);
  std::string_view path = uri;
  if (!scheme.empty()) {
    Require(scheme == "file", ErrorCode::kUnimplemented,
            "cannot open {}: only local files are supported so far, not {}:; copy the file to a "
            "local path",
            uri, scheme);
    path.remove_prefix(scheme.size() + 1);
    // file://host/path has an authority; only the empty one and localhost are this machine.
    if (path.starts_with("//localhost/")) path.remove_prefix(11);
    if (path.starts_with("///")) path.remove_prefix(2);
    Require(!path.starts_with("//"), ErrorCode::kInvalidArgument,
            "{} names a host; write file:///path for a local file", uri);
  }
  Require(!path.empty(), ErrorCode::kInvalidArgument, "the file name in '{}' is empty", uri);
  return std::string(path);
}

}  // namespace hearth::storage
