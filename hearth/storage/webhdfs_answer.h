// What NameNodes, DataNodes and HttpFS answer over HTTP. The texts come from the network and are
// checked: an answer that is not of the expected form throws kDataLoss.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "hearth/base/error.h"
#include "hearth/storage/file_system.h"

namespace hearth::storage {

// What a server that refused wants done.
enum class Remedy {
  kNone,      // it will refuse again
  kRepeat,    // it may pass: safe mode, a leader being elected, an overloaded server
  kOther,     // another NameNode of the same name service is in charge
  kNewToken,  // it will take a newer delegation token, if there is one
};

struct Refusal {
  ErrorCode code = ErrorCode::kInternal;
  Remedy remedy = Remedy::kNone;
  std::string text;  // one line: what failed and what to do
};

// For a Java exception, by its class name and message; nothing for an unknown one.
std::optional<Refusal> ReadException(std::string_view name, std::string_view message);

// The first line of a server's text, of bounded length, without what would confuse a terminal.
std::string OneLine(std::string_view text);

// Of an answer whose status is no success.
Refusal ReadRefusal(long status, std::string_view body);

// {"FileStatus": ...}; `uri` is what was asked for.
FileStatus ReadStatus(std::string_view body, const std::string& uri);

struct Listing {
  std::vector<FileStatus> entries;
  bool more = false;      // ask again, behind the last entry
  bool is_folder = true;  // false: it was a file that was listed
};
// {"FileStatuses": ...} or {"DirectoryListing": ...}, of a folder.
Listing ReadListing(std::string_view body, const std::string& folder);

// {"boolean": ...}; nothing of an empty body.
std::optional<bool> ReadBoolean(std::string_view body);

}  // namespace hearth::storage
