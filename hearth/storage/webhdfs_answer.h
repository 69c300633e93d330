// Parses the responses of NameNodes, DataNodes and HttpFS. They come from the network and are
// checked: a response of another form throws kDataLoss.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "hearth/base/error.h"
#include "hearth/storage/file_system.h"

namespace hearth::storage {

// What a client can do after an error response.
enum class Remedy {
  kNone,      // permanent
  kRepeat,    // retry: safe mode, leader election, an overloaded server
  kOther,     // use another NameNode of the name service
  kNewToken,  // use a newer delegation token, if there is one
};

// A server's error, as an error of Hearth.
struct Refusal {
  ErrorCode code = ErrorCode::kInternal;
  Remedy remedy = Remedy::kNone;
  std::string text;  // one line: the failure and what to do
};

// For a Java exception, by its class name and message; empty for an unknown one.
std::optional<Refusal> ReadException(std::string_view name, std::string_view message);

// The first line of a server's text, of bounded length, without control characters.
std::string OneLine(std::string_view text);

// Parses a response without a success status.
Refusal ReadRefusal(long status, std::string_view body);

// {"FileStatus": ...}; `uri` is the requested one.
FileStatus ReadStatus(std::string_view body, const std::string& uri);

// One response to LISTSTATUS or LISTSTATUS_BATCH: some of a folder's entries.
struct Listing {
  std::vector<FileStatus> entries;
  bool more = false;      // request the entries after the last one
  bool is_folder = true;  // false: the listed path is a file
};
// {"FileStatuses": ...} or {"DirectoryListing": ...}, of a folder.
Listing ReadListing(std::string_view body, const std::string& folder);

// {"boolean": ...}; empty for an empty body.
std::optional<bool> ReadBoolean(std::string_view body);

}  // namespace hearth::storage
