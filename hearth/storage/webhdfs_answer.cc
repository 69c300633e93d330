#include "hearth/storage/webhdfs_answer.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <limits>
#include <nlohmann/json.hpp>
#include <span>

#include "hearth/storage/uri.h"

namespace hearth::storage {
namespace {

using nlohmann::json;

constexpr int kDeepest = 16;          // the depth of a valid response is 5
constexpr size_t kLongestText = 400;  // limit for a message of the server

// Parses a JSON object. The depth is limited, because deep nesting would use many times the memory
// of the text.
json Parse(std::string_view text) {
  const auto limit = [](int depth, json::parse_event_t, json&) {
    Require(depth <= kDeepest, ErrorCode::kDataLoss, "the answer is nested too deeply");
    return true;
  };
  json parsed = json::parse(text, limit, /*allow_exceptions=*/false);
  Require(parsed.is_object(), ErrorCode::kDataLoss,
          "the answer is not from WebHDFS: is this the web address of a NameNode or of HttpFS?");
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
  // 9.0e18 is below 2^63, so the conversion to int64_t is defined.
  Require(value.is_number_integer() && value.get<double>() >= 0 && value.get<double>() < 9.0e18,
          ErrorCode::kDataLoss, "{} in the answer is not a size or time", name);
  return value.get<int64_t>();
}

FileStatus Entry(const json& object, std::string uri) {
  const std::string type = Text(object, "type");
  const bool is_folder = type == "DIRECTORY";
  const int64_t size = Number(object, "length"), modified = Number(object, "modificationTime");
  const bool has_id = object.contains("fileId");  // HttpFS has no file ids
  const uint64_t id = has_id ? static_cast<uint64_t>(Number(object, "fileId")) : 0;
  return {std::move(uri), is_folder, is_folder ? 0 : static_cast<uint64_t>(size), modified, id};
}

constexpr char kNoLogin[] =
    "the cluster requires Kerberos, and there is no valid ticket: kinit (check with `klist`), "
    "or provide a delegation token (HADOOP_TOKEN_FILE_LOCATION)";
constexpr char kNoToken[] =
    "the delegation token has expired, was cancelled or is not this cluster's; submit the job "
    "again, with --principal and --keytab if it runs longer than "
    "dfs.namenode.delegation.token.max-lifetime (7 days)";

constexpr char kNotReady[] = "the NameNode is not ready";
constexpr char kStandby[] = "the NameNode is on standby and no other one answers";
constexpr char kSafeMode[] =
    "the NameNode is in safe mode and takes no changes; look with `hdfs dfsadmin -safemode get`";
constexpr char kNoSpace[] =
    "the folder's quota of space is used up; delete files, or have it raised";
constexpr char kNotEmpty[] = "the folder is not empty";
constexpr char kPastTheEnd[] =
    "the file has become shorter since it was opened; has it been replaced?";

struct Known {
  std::string_view words;  // the class of an exception, or text in its message
  ErrorCode code;
  Remedy remedy;
  const char* text;
  std::string_view more = "";  // another text that the message must contain

  bool IsSaidBy(std::string_view exception, std::string_view message) const {
    return exception == words ||
           (message.find(words) != message.npos && message.find(more) != message.npos);
  }
};

// The first matching entry is used. The first kWrapped entries are exceptions that servers wrap in
// exceptions of more general classes.
constexpr size_t kWrapped = 8;
constexpr auto kKnown = [] {
  using enum ErrorCode;
  using enum Remedy;
  return std::to_array<Known>({
      {"RetriableException", kUnavailable, kRepeat, kNotReady},
      {"StandbyException", kUnavailable, kOther, kStandby},
      {"$InvalidToken", kPermissionDenied, kNewToken, kNoToken},
      {"can't be found in cache", kPermissionDenied, kNewToken, kNoToken},
      {"Client cannot authenticate via", kPermissionDenied, kNone, kNoLogin},
      {"GSSException", kPermissionDenied, kNone, kNoLogin},
      {"SIMPLE authentication is not enabled", kPermissionDenied, kNone, kNoLogin},
      {"not authenticated by filter", kPermissionDenied, kNone, kNoLogin},
      {"Token", kPermissionDenied, kNewToken, kNoToken, "expired"},
      {"DELEGATION_TOKEN", kPermissionDenied, kNewToken, kNoToken, "expired"},
      {"FileNotFoundException", kNotFound, kNone, "no such path; look with `hdfs dfs -ls`"},
      {"AccessControlException", kPermissionDenied, kNone,
       "permission denied; ask the owner, or set HADOOP_USER_NAME where the cluster trusts it"},
      {"SecurityException", kPermissionDenied, kNone,
       "the cluster did not accept this identity; kinit, or provide a delegation token "
       "(HADOOP_TOKEN_FILE_LOCATION)"},
      {"InvalidToken", kPermissionDenied, kNewToken, kNoToken},
      {"NSQuotaExceededException", kResourceExhausted, kNone,
       "the folder's quota of names is used up; delete files, or have it raised"},
      {"DSQuotaExceededException", kResourceExhausted, kNone, kNoSpace},
      {"QuotaByStorageTypeExceededException", kResourceExhausted, kNone, kNoSpace},
      {"SafeModeException", kUnavailable, kRepeat, kSafeMode},
      {"ObserverRetryOnActiveException", kUnavailable, kOther,
       "the NameNode is an observer, and no other one answers"},
      {"FileAlreadyExistsException", kInvalidArgument, kNone,
       "a file or folder of that name already exists"},
      {"ParentNotDirectoryException", kInvalidArgument, kNone, "a part of the path is a file"},
      {"PathIsNotEmptyDirectoryException", kInvalidArgument, kNone, kNotEmpty},
      {"PathIsNotDirectoryException", kInvalidArgument, kNone, "it is not a folder"},
      {"InvalidPathException", kInvalidArgument, kNone, "HDFS does not accept that name"},
      {"IllegalArgumentException", kInvalidArgument, kNone,
       "the server does not accept the request"},
      {"safe mode", kUnavailable, kRepeat, kSafeMode},
      {"out of the range", kDataLoss, kNone, kPastTheEnd},
      {"is non empty", kInvalidArgument, kNone, kNotEmpty},
  });
}();
static_assert(kKnown[kWrapped - 1].words == "not authenticated by filter");

// Returns true if an exception of this class may contain another exception in its message. Messages
// of other classes may contain any words in a path.
bool MayWrap(std::string_view exception, std::string_view message) {
  return exception == "SecurityException" || exception == "InvalidToken" ||
         (exception == "AccessControlException" && !message.starts_with("Permission denied"));
}

const Known* FindKnown(std::string_view exception, std::string_view message) {
  const auto says = [&](const Known& known) { return known.IsSaidBy(exception, message); };
  // If the class is in the table and MayWrap() is false, the message is not searched, because it
  // may contain words of a path that the user has chosen.
  const auto exact = std::ranges::find(kKnown, exception, &Known::words);
  // HttpFS and some DataNodes wrap the cause; the message then contains the class of the cause.
  if (exact == kKnown.end()) {
    const auto found = std::ranges::find_if(kKnown, says);
    return found != kKnown.end() ? &*found : nullptr;
  }
  const auto wrapped = std::span(kKnown).first<kWrapped>();
  const auto found = std::ranges::find_if(wrapped, says);
  return MayWrap(exception, message) && found != wrapped.end() ? &*found : &*exact;
}

Refusal OfStatus(long status) {
  if (status == 401) {
    return {ErrorCode::kPermissionDenied, Remedy::kNone,
            fmt::format("the server requires a login (HTTP 401): {}", kNoLogin)};
  }
  // Proxies and overloaded servers send these statuses, without Hadoop's JSON.
  if (status == 429 || status >= 500) {
    return {ErrorCode::kUnavailable, Remedy::kRepeat,
            fmt::format("the server failed (HTTP {})", status)};
  }
  return {ErrorCode::kInvalidArgument, Remedy::kNone,
          fmt::format("the answer is not from WebHDFS (HTTP {}): is this the web address of a "
                      "NameNode or of HttpFS?",
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
  // An IOException may have any cause: no DataNode with enough space for a block, a disk error, or
  // a bug.
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
  // LISTSTATUS returns {"FileStatuses": {"FileStatus": [...]}}. LISTSTATUS_BATCH has this object in
  // "partialListing" and adds the number of remaining entries.
  const json& entries = Member(Member(*statuses, "FileStatuses"), "FileStatus");
  Require(entries.is_array(), ErrorCode::kDataLoss, "FileStatus in the answer is not a list");
  for (const json& entry : entries) {
    const std::string name = Text(entry, "pathSuffix");
    // WebHDFS lists a file as a single entry without a name.
    if (name.empty()) {
      listing.is_folder = false;
      return listing;
    }
    // With a '/' in a name, a server could lead a recursive reader out of the folder.
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
  Require(value.is_boolean(), ErrorCode::kDataLoss,
          "expected {{\"boolean\": true or false}}, got {}", OneLine(body));
  return value.get<bool>();
}

}  // namespace hearth::storage
