#include "hearth/storage/webhdfs_answer.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <limits>
#include <nlohmann/json.hpp>

#include "hearth/storage/uri.h"

namespace hearth::storage {
namespace {

using nlohmann::json;

constexpr int kDeepest = 16;          // an answer's own depth is 5
constexpr size_t kLongestText = 400;  // of a server's message

// Parses an object. Deep nesting would cost many times the text's memory.
json Parse(std::string_view text) {
  const auto limit = [](int depth, json::parse_event_t, json&) {
    Require(depth <= kDeepest, ErrorCode::kDataLoss, "the answer is nested too deeply");
    return true;
  };
  json parsed = json::parse(text, limit, /*allow_exceptions=*/false);
  Require(parsed.is_object(), ErrorCode::kDataLoss,
          "the answer is not WebHDFS's: is this the web address of a NameNode or of HttpFS?");
  return parsed;
}

const json& Member(const json& object, const char* name) {
  const auto found = object.find(name);
  Require(object.is_object() && found != object.end(), ErrorCode::kDataLoss, "the answer has no {}",
          name);
  return *found;
}

std::string Text(const json& object, const char* name) {
  const json& value = Member(object, name);
  Require(value.is_string(), ErrorCode::kDataLoss, "{} in the answer is not text", name);
  return value.get<std::string>();
}

int64_t Number(const json& object, const char* name) {
  const json& value = Member(object, name);
  Require(value.is_number_integer() && value.get<double>() >= 0 && value.get<double>() < 9.0e18,
          ErrorCode::kDataLoss, "{} in the answer is not a size or time", name);
  return value.get<int64_t>();
}

FileStatus Entry(const json& object, std::string uri) {
  const std::string type = Text(object, "type");
  const bool is_folder = type == "DIRECTORY";
  const int64_t size = Number(object, "length"), modified = Number(object, "modificationTime");
  const bool has_id = object.contains("fileId");  // HttpFS tells none
  const uint64_t id = has_id ? static_cast<uint64_t>(Number(object, "fileId")) : 0;
  return {std::move(uri), is_folder, is_folder ? 0 : static_cast<uint64_t>(size), modified, id};
}

constexpr char kNoLogin[] =
    "the cluster requires Kerberos, and there is no valid ticket: kinit (`klist` shows what there "
    "is), or give a delegation token (HADOOP_TOKEN_FILE_LOCATION)";
constexpr char kNoToken[] =
    "the delegation token has expired, was cancelled or is not this cluster's; submit the job "
    "again, and let none run longer than dfs.namenode.delegation.token.max-lifetime (7 days)";

struct Known {
  std::string_view exception;
  ErrorCode code;
  Remedy remedy;
  const char* text;
};

constexpr char kNotReady[] = "the NameNode is not ready";
constexpr char kStandby[] = "the NameNode is on standby and no other one answers";

// What a server wraps in other exceptions, which say less: before their class names.
constexpr std::array<Known, 8> kPhrases = {{
    {"RetriableException", ErrorCode::kUnavailable, Remedy::kRepeat, kNotReady},
    {"StandbyException", ErrorCode::kUnavailable, Remedy::kOther, kStandby},
    {"$InvalidToken", ErrorCode::kPermissionDenied, Remedy::kNone, kNoToken},
    {"can't be found in cache", ErrorCode::kPermissionDenied, Remedy::kNone, kNoToken},
    {"Client cannot authenticate via", ErrorCode::kPermissionDenied, Remedy::kNone, kNoLogin},
    {"GSSException", ErrorCode::kPermissionDenied, Remedy::kNone, kNoLogin},
    {"SIMPLE authentication is not enabled", ErrorCode::kPermissionDenied, Remedy::kNone, kNoLogin},
    {"not authenticated by filter", ErrorCode::kPermissionDenied, Remedy::kNone, kNoLogin},
}};

constexpr std::array<Known, 18> kKnown = {{
    {"FileNotFoundException", ErrorCode::kNotFound, Remedy::kNone,
     "no such path; look with `hdfs dfs -ls`"},
    {"AccessControlException", ErrorCode::kPermissionDenied, Remedy::kNone,
     "permission denied; ask the owner, or set HADOOP_USER_NAME where the cluster trusts it"},
    {"SecurityException", ErrorCode::kPermissionDenied, Remedy::kNone,
     "the cluster did not accept this identity; kinit, or give a delegation token "
     "(HADOOP_TOKEN_FILE_LOCATION)"},
    {"InvalidToken", ErrorCode::kPermissionDenied, Remedy::kNone, kNoToken},
    {"NSQuotaExceededException", ErrorCode::kResourceExhausted, Remedy::kNone,
     "the folder's quota of names is used up; delete files, or have it raised"},
    {"DSQuotaExceededException", ErrorCode::kResourceExhausted, Remedy::kNone,
     "the folder's quota of space is used up; delete files, or have it raised"},
    {"QuotaByStorageTypeExceededException", ErrorCode::kResourceExhausted, Remedy::kNone,
     "the folder's quota of space is used up; delete files, or have it raised"},
    {"SafeModeException", ErrorCode::kUnavailable, Remedy::kRepeat,
     "the NameNode is in safe mode and takes no changes; look with `hdfs dfsadmin -safemode get`"},
    {"RetriableException", ErrorCode::kUnavailable, Remedy::kRepeat, kNotReady},
    {"StandbyException", ErrorCode::kUnavailable, Remedy::kOther, kStandby},
    {"ObserverRetryOnActiveException", ErrorCode::kUnavailable, Remedy::kOther,
     "the NameNode only observes and no other one answers"},
    {"FileAlreadyExistsException", ErrorCode::kInvalidArgument, Remedy::kNone,
     "a file or folder of that name is there already"},
    {"ParentNotDirectoryException", ErrorCode::kInvalidArgument, Remedy::kNone,
     "a part of the path is a file"},
    {"PathIsNotEmptyDirectoryException", ErrorCode::kInvalidArgument, Remedy::kNone,
     "the folder is not empty"},
    {"PathIsNotDirectoryException", ErrorCode::kInvalidArgument, Remedy::kNone,
     "it is not a folder"},
    {"InvalidPathException", ErrorCode::kInvalidArgument, Remedy::kNone,
     "HDFS does not accept that name"},
    {"PastTheEnd", ErrorCode::kDataLoss, Remedy::kNone,
     "the file has become shorter since it was opened; has it been replaced?"},
    {"IllegalArgumentException", ErrorCode::kInvalidArgument, Remedy::kNone,
     "the server does not accept the request"},
}};

// A message of others may have any text in a path.
bool MayWrap(std::string_view exception, std::string_view message) {
  return exception == "SecurityException" || exception == "InvalidToken" ||
         (exception == "AccessControlException" && !message.starts_with("Permission denied"));
}

const Known* FindKnown(std::string_view exception, std::string_view message) {
  const auto exact = std::ranges::find(kKnown, exception, &Known::exception);
  const bool is_exact = exact != kKnown.end();
  if (is_exact && !MayWrap(exception, message)) return &*exact;
  for (const Known& known : kPhrases) {
    if (exception == known.exception || message.find(known.exception) != message.npos) {
      return &known;
    }
  }
  // HttpFS and some DataNodes wrap the cause, whose class then stands in the message.
  if (is_exact) return &*exact;
  const bool has_token =
      message.find("Token") != message.npos || message.find("DELEGATION_TOKEN") != message.npos;
  if (has_token && message.find("expired") != message.npos) return FindKnown("InvalidToken", "");
  for (const Known& known : kKnown) {
    if (message.find(known.exception) != message.npos) return &known;
  }
  if (message.find("safe mode") != message.npos) return FindKnown("SafeModeException", "");
  if (message.find("out of the range") != message.npos) return FindKnown("PastTheEnd", "");
  if (message.find("is non empty") != message.npos) {
    return FindKnown("PathIsNotEmptyDirectoryException", "");
  }
  return nullptr;
}

Refusal OfStatus(long status) {
  if (status == 401) {
    return {ErrorCode::kPermissionDenied, Remedy::kNone,
            fmt::format("the server requires a login (HTTP 401): {}", kNoLogin)};
  }
  if (status == 429 || status >= 500) {
    return {ErrorCode::kUnavailable, Remedy::kRepeat,
            fmt::format("the server failed (HTTP {})", status)};
  }
  return {
      ErrorCode::kInvalidArgument, Remedy::kNone,
      fmt::format("the answer is not WebHDFS's (HTTP {}): is this the web address of a NameNode "
                  "or of HttpFS?",
                  status)};
}

}  // namespace

std::optional<Refusal> ReadException(std::string_view name, std::string_view message) {
  const Known* known = FindKnown(name, message);
  if (known == nullptr) return std::nullopt;
  return Refusal{known->code, known->remedy, fmt::format("{} ({})", known->text, OneLine(message))};
}

std::string OneLine(std::string_view text) {
  size_t end = std::min(text.find('\n'), text.size());
  if (end > kLongestText) {
    end = kLongestText;
    while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xc0) == 0x80) --end;
  }
  std::string line(text.substr(0, end));
  std::ranges::replace_if(
      line, [](unsigned char c) { return c < 0x20 || c == 0x7f; }, ' ');
  return line;
}

Refusal ReadRefusal(long status, std::string_view body) {
  std::string exception, message;
  try {
    const json parsed = Parse(body);
    const json& remote = Member(parsed, "RemoteException");
    exception = Text(remote, "exception");
    message = Text(remote, "message");
  } catch (const Error&) {
    return OfStatus(status);
  }
  if (auto known = ReadException(exception, message)) return *std::move(known);
  // An IOException may be anything: no DataNode that can take a block, a disk, a defect.
  const bool may_pass = status >= 500 || exception == "IOException";
  return {may_pass ? ErrorCode::kUnavailable : ErrorCode::kInternal,
          may_pass ? Remedy::kRepeat : Remedy::kNone,
          fmt::format("{}: {}", OneLine(exception), OneLine(message))};
}

FileStatus ReadStatus(std::string_view body, const std::string& uri) {
  const json parsed = Parse(body);
  return Entry(Member(parsed, "FileStatus"), uri);
}

Listing ReadListing(std::string_view body, const std::string& folder) {
  const json parsed = Parse(body);
  Listing listing;
  const json* statuses = &parsed;
  if (const auto batch = parsed.find("DirectoryListing"); batch != parsed.end()) {
    listing.more = Number(*batch, "remainingEntries") > 0;
    statuses = &Member(*batch, "partialListing");
  }
  const json& entries = Member(Member(*statuses, "FileStatuses"), "FileStatus");
  Require(entries.is_array(), ErrorCode::kDataLoss, "FileStatus in the answer is not a list");
  for (const json& entry : entries) {
    const std::string name = Text(entry, "pathSuffix");
    if (name.empty()) {
      listing.is_folder = false;
      return listing;
    }
    Require(
        name.find_first_of(std::string_view("/\0", 2)) == name.npos && name != "." && name != "..",
        ErrorCode::kDataLoss, "the answer lists a file without a valid name");
    listing.entries.push_back(Entry(entry, Join(folder, name)));
  }
  return listing;
}

std::optional<bool> ReadBoolean(std::string_view body) {
  if (body.find_first_not_of(" \t\r\n") == body.npos) return std::nullopt;
  const json parsed = Parse(body);
  const json& value = Member(parsed, "boolean");
  Require(value.is_boolean(), ErrorCode::kDataLoss, "the answer is neither true nor false");
  return value.get<bool>();
}

}  // namespace hearth::storage
