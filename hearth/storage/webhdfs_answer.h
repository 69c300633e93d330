// Parses responses of NameNodes, DataNodes and HttpFS. They come from the network and are not
// trusted: a malformed response throws kDataLoss.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "hearth/base/error.h"
#include "hearth/storage/file_system.h"

namespace hearth::storage {

// What the client can do after an error.
enum class Remedy {
  kNone,      // nothing: the error is permanent
  kRepeat,    // retry, such as after safe mode, a leader election, or overload
  kOther,     // use another NameNode of the name service
  kNewToken,  // use a newer delegation token, if there is one
};

// An error response, converted to an error of Hearth.
struct Refusal {
  ErrorCode code = ErrorCode::kInternal;
  Remedy remedy = Remedy::kNone;
  std::string text;  // one line with the failure and what to do about it
};

// Converts a Java exception, given by its class name and message. Returns nullopt for an unknown
// class.
std::optional<Refusal> ReadException(std::string_view name, std::string_view message);

// The first line of a server's text, shortened and without control characters.
std::string OneLine(std::string_view text);

// Parses a response whose status is not a success.
Refusal ReadRefusal(long status, std::string_view body);

// Parses {"FileStatus": ...}. `uri` is the requested URI.
FileStatus ReadStatus(std::string_view body, const std::string& uri);

// A response to LISTSTATUS or LISTSTATUS_BATCH: some or all entries of a folder.
struct Listing {
  std::vector<FileStatus> entries;
  bool more = false;      // if true, entries after the last one must be requested
  bool is_folder = true;  // false if the listed path is a file
};
// Parses {"FileStatuses": ...} or {"DirectoryListing": ...} of a folder.
Listing ReadListing(std::string_view body, const std::string& folder);

// Parses {"boolean": ...}. Returns nullopt for an empty body.
std::optional<bool> ReadBoolean(std::string_view body);

}  // namespace hearth::storage
