#include "hearth/storage/webhdfs.h"

#include <fmt/format.h>

#include <algorithm>
#include <random>
#include <utility>

#include "hearth/base/error.h"
#include "hearth/base/log.h"
#include "hearth/storage/hadoop_token.h"
#include "hearth/storage/read_ahead.h"
#include "hearth/storage/temporary_name.h"
#include "hearth/storage/uri.h"
#include "hearth/storage/webhdfs_answer.h"

namespace hearth::storage {
namespace {

constexpr size_t kLargestListing = 64 << 20;  // of one answer; a batch has 1,000 names
constexpr size_t kMostEntries = 10'000'000;
constexpr int kMostRedirects = 4;
constexpr int kMostDamagedAnswers = 3;
constexpr double kFirstPause = 0.1, kLongestPause = 5;

// Of a path or a parameter's value; '/' may stand in both.
std::string Escaped(std::string_view text) {
  constexpr std::string_view kPlain = "-._~/";
  std::string escaped;
  for (const char each : text) {
    const auto c = static_cast<unsigned char>(each);
    if ((c < 0x80 && std::isalnum(c)) || kPlain.find(each) != kPlain.npos) {
      escaped += each;
    } else {
      escaped += fmt::format("%{:02X}", c);
    }
  }
  return escaped;
}

bool IsRedirect(const HttpAnswer& answer) {
  return answer.status >= 301 && answer.status <= 308 && answer.status != 304;
}

bool MayPass(ErrorCode code) {
  return code == ErrorCode::kUnavailable || code == ErrorCode::kDeadlineExceeded;
}

}  // namespace

// The repetitions of one operation: how long, how often, which pause comes next.
class WebHdfs::Attempts {
 public:
  explicit Attempts(double seconds) : until_(Deadline::After(seconds)) {}

  // Waits before the next attempt; false when it is time to give up.
  bool Next(const Cancellation* cancellation, Deadline sooner) {
    if (until_.expired() || sooner.expired()) return false;
    static thread_local std::minstd_rand random{std::random_device{}()};
    const double share = 0.5 + 0.5 * static_cast<double>(random() % 1000) / 1000;
    const double pause = std::min(pause_ * share, until_.remaining());
    pause_ = std::min(2 * pause_, kLongestPause);
    Cancellation never;
    return (cancellation == nullptr ? &never : cancellation)->Pause(pause);
  }
  bool DamagedAgain() { return ++damaged_ < kMostDamagedAnswers; }
  void NextAddress() { ++moved_; }

  size_t moved() const { return moved_; }
  // The DataNode that failed last: NameNodes pass over it once.
  std::string excluded;

 private:
  Deadline until_;
  double pause_ = kFirstPause;
  int damaged_ = 0;
  size_t moved_ = 0;
};

WebHdfs::WebHdfs(WebHdfsOptions options) : options_(std::move(options)) {}

std::string WebHdfs::Url(const Call& call, const std::string& address,
                         const std::string& excluded) const {
  const std::string who = options_.token.empty() ? "user.name=" + Escaped(options_.user)
                                                 : "delegation=" + Escaped(options_.token);
  std::string url = fmt::format("{}/webhdfs/v1{}?op={}&{}", address,
                                Escaped(ParseRemote(call.uri).path), call.operation, who);
  if (!excluded.empty()) url += "&excludedatanodes=" + Escaped(excluded);
  return url;
}

void WebHdfs::Fail(const Call& call, const std::string& address, ErrorCode code,
                   const std::string& text) const {
  const std::string who = options_.token.empty() ? "user " + options_.user : "a delegation token";
  throw Error(code, WithoutToken(fmt::format("cannot {} {} as {} by {}: {}", call.doing, call.uri,
                                             who, address, text),
                                 options_.token));
}

HttpAnswer WebHdfs::Try(const Call& call, const std::string& address, Attempts* attempts) {
  HttpRequest request;
  request.method = call.method;
  request.url = Url(call, address, std::exchange(attempts->excluded, ""));
  request.largest_answer = call.largest_answer;
  request.seconds = options_.answer_seconds;
  request.cancellation = call.cancellation;
  request.only_once = call.lost != nullptr || !call.repeat;
  // A body goes to the DataNode alone; OPEN gets its bytes from there or, of HttpFS, at once.
  request.store = call.store;
  for (int redirects = 0;; ++redirects) {
    const bool at_data = redirects > 0;
    if (at_data && call.body != nullptr) {
      request.body = call.body->fd();
      request.body_size = call.body->size();
    }
    HttpAnswer answer;
    try {
      answer = client_.Send(request);
    } catch (const Error&) {
      if (at_data) attempts->excluded = HostOfUrl(request.url);
      throw;
    }
    if (!IsRedirect(answer)) {
      // Without a redirect a body has not been sent.
      Require(answer.status >= 300 || call.body == nullptr || at_data, ErrorCode::kDataLoss,
              "the server took a file without asking for its bytes");
      if (answer.status >= 500 && at_data) attempts->excluded = HostOfUrl(request.url);
      return answer;
    }
    Require(redirects < kMostRedirects, ErrorCode::kDataLoss, "the server redirects in a circle");
    const std::string_view scheme = Scheme(answer.location);
    Require(scheme == "http" || scheme == "https", ErrorCode::kDataLoss,
            "the server redirects to an address that is not http: or https:");
    request.url = answer.location;
  }
}

HttpAnswer WebHdfs::Do(const Call& call) {
  Attempts attempts(call.repeat ? options_.repeat_seconds : 0);
  const Deadline first_contact = Deadline::After(options_.first_contact_seconds);
  for (bool told = false;;) {
    const size_t index = (active_ + attempts.moved()) % options_.addresses.size();
    const std::string& address = options_.addresses[index];
    Refusal refusal;
    try {
      HttpAnswer answer = Try(call, address, &attempts);
      contacted_ = true;
      if (answer.status >= 200 && answer.status < 300) {
        active_ = index;
        if (call.store.empty() || answer.stored == call.store.size()) return answer;
        refusal = {ErrorCode::kDataLoss, Remedy::kRepeat,
                   fmt::format("{} bytes came instead of {}: has the file been replaced?",
                               answer.stored, call.store.size())};
      } else {
        refusal = ReadRefusal(answer.status, answer.body);
        if (refusal.remedy == Remedy::kNone) active_ = index;
      }
    } catch (const Error& error) {
      const bool repeat = MayPass(error.code()) || error.code() == ErrorCode::kDataLoss;
      refusal = {error.code(), repeat ? Remedy::kRepeat : Remedy::kNone, error.message()};
      if (call.lost != nullptr) *call.lost = true;
      attempts.NextAddress();
    }
    if (refusal.remedy == Remedy::kOther) attempts.NextAddress();
    const bool again =
        refusal.remedy != Remedy::kNone &&
        (refusal.code != ErrorCode::kDataLoss || attempts.DamagedAgain()) &&
        attempts.Next(call.cancellation, contacted_ ? Deadline::Never() : first_contact);
    if (!again) Fail(call, address, refusal.code, refusal.text);
    if (!std::exchange(told, true)) {
      log::Warning("Trying again to {} {}: {}", call.doing, call.uri,
                   WithoutToken(refusal.text, options_.token));
    }
  }
}

std::optional<FileStatus> WebHdfs::Stat(const std::string& uri) {
  try {
    const Call call{.doing = "look at", .uri = uri, .method = "GET", .operation = "GETFILESTATUS"};
    return ReadStatus(Do(call).body, uri);
  } catch (const Error& error) {
    if (error.code() == ErrorCode::kNotFound) return std::nullopt;
    throw;
  }
}

std::vector<FileStatus> WebHdfs::List(const std::string& folder) {
  if (!has_batches_) return ListOnce(folder);
  Call call{.doing = "list", .uri = folder, .method = "GET", .operation = "LISTSTATUS_BATCH"};
  call.largest_answer = kLargestListing;
  std::vector<FileStatus> found;
  for (;;) {
    Listing listing;
    try {
      listing = ReadListing(Do(call).body, folder);
    } catch (const Error& error) {
      if (error.code() != ErrorCode::kInvalidArgument || !found.empty()) throw;
      auto whole = ListOnce(folder);  // throws where the folder is what was wrong
      has_batches_ = false;
      return whole;
    }
    if (!listing.is_folder)
      Fail(call, options_.addresses[active_], ErrorCode::kInvalidArgument, "it is not a folder");
    const bool moves = !listing.entries.empty() &&
                       (found.empty() || found.back().uri < listing.entries.front().uri);
    std::ranges::move(listing.entries, std::back_inserter(found));
    if (!listing.more) break;
    if (!moves || found.size() > kMostEntries) {
      Fail(call, options_.addresses[active_], ErrorCode::kDataLoss, "the list does not end");
    }
    call.operation = "LISTSTATUS_BATCH&startAfter=" + Escaped(NameOf(found.back().uri));
  }
  std::ranges::sort(found, {}, &FileStatus::uri);
  return found;
}

std::vector<FileStatus> WebHdfs::ListOnce(const std::string& folder) {
  Call call{.doing = "list", .uri = folder, .method = "GET", .operation = "LISTSTATUS"};
  call.largest_answer = kLargestListing;
  Listing listing = ReadListing(Do(call).body, folder);
  if (!listing.is_folder)
    Fail(call, options_.addresses[active_], ErrorCode::kInvalidArgument, "it is not a folder");
  std::ranges::sort(listing.entries, {}, &FileStatus::uri);
  return std::move(listing.entries);
}

void WebHdfs::Fetch(const std::string& uri, uint64_t offset, std::span<char> out,
                    const Cancellation& cancellation) {
  Call call{.doing = "read", .uri = uri, .method = "GET"};
  call.operation = fmt::format("OPEN&offset={}&length={}", offset, out.size());
  call.store = out;
  call.cancellation = &cancellation;
  Do(call);
}

std::unique_ptr<InputFile> WebHdfs::Open(const std::string& uri) {
  const Call call{.doing = "open", .uri = uri, .method = "GET", .operation = "GETFILESTATUS"};
  const FileStatus status = ReadStatus(Do(call).body, uri);
  if (status.is_folder) {
    Fail(call, options_.addresses[active_], ErrorCode::kInvalidArgument, "it is a folder");
  }
  const auto fetch = [this, uri](uint64_t offset, char* data, size_t size,
                                 const Cancellation& cancellation) {
    Fetch(uri, offset, {data, size}, cancellation);
  };
  return std::make_unique<ReadAhead>(fetch, status.size);
}

void WebHdfs::Upload(const std::string& uri, const SpoolFile& bytes) {
  Call call{.doing = "write", .uri = uri, .method = "PUT", .operation = "CREATE&overwrite=true"};
  call.body = &bytes;
  Do(call);
}

std::unique_ptr<OutputFile> WebHdfs::Create(const std::string& uri) {
  const std::string temporary = TemporaryFor(uri);
  // Whoever may not write here is to hear it now, not when hours of work are to be kept.
  Call call{.doing = "create", .uri = uri, .method = "GET", .operation = "GETFILESTATUS"};
  if (const auto there = Stat(uri); there && there->is_folder) {
    Fail(call, options_.addresses[active_], ErrorCode::kInvalidArgument, "a folder has that name");
  }
  Upload(temporary, SpoolFile());
  SpooledOutput::Steps steps;
  steps.upload = [this, uri, temporary](const SpoolFile& bytes) {
    Upload(temporary, bytes);
    Rename(temporary, uri);
  };
  steps.discard = [this, temporary] { DeleteQuietly(temporary); };
  return std::make_unique<SpooledOutput>(std::move(steps));
}

void WebHdfs::Append(const std::string& uri, std::string_view bytes) {
  SpoolFile spool;
  spool.Append(bytes);
  const auto there = Stat(uri);
  if (!there) return Upload(uri, spool);
  Call call{.doing = "append to", .uri = uri, .method = "POST", .operation = "APPEND"};
  call.body = &spool;
  call.repeat = false;  // it could add the bytes twice
  Do(call);
}

bool WebHdfs::RenameOnto(const std::string& from, const std::string& to) {
  bool lost = false;
  Call call{.doing = "rename", .uri = from, .method = "PUT"};
  call.lost = &lost;
  call.operation = "RENAME&renameoptions=OVERWRITE&destination=" + Escaped(ParseRemote(to).path);
  try {
    return ReadBoolean(Do(call).body).value_or(true);
  } catch (const Error& error) {
    if (lost && error.code() == ErrorCode::kNotFound && !Stat(from) && Stat(to)) return true;
    throw;
  }
}

void WebHdfs::Rename(const std::string& from, const std::string& to) {
  const Call call{.doing = "rename", .uri = from};
  const auto target = Stat(to);
  if (target && target->is_folder) {
    Fail(call, options_.addresses[active_], ErrorCode::kInvalidArgument,
         fmt::format("{} is a folder", to));
  }
  if (RenameOnto(from, to)) return;
  // HttpFS does not know the option: it says false where a file has the name.
  if (!Stat(from)) Fail(call, options_.addresses[active_], ErrorCode::kNotFound, "no such path");
  if (target) Delete(to, /*recursive=*/false);
  if (!RenameOnto(from, to)) {
    Fail(call, options_.addresses[active_], ErrorCode::kInvalidArgument,
         fmt::format("the server does not rename it to {}; is its folder there?", to));
  }
}

bool WebHdfs::Delete(const std::string& uri, bool recursive) {
  Call call{.doing = "delete", .uri = uri, .method = "DELETE"};
  call.operation = fmt::format("DELETE&recursive={}", recursive);
  return ReadBoolean(Do(call).body).value_or(false);
}

void WebHdfs::DeleteQuietly(const std::string& uri) noexcept {
  try {
    Call call{.doing = "delete", .uri = uri, .method = "DELETE", .operation = "DELETE"};
    call.repeat = false;  // nobody waits for it
    Do(call);
  } catch (const std::exception& error) {
    log::Warning("{} is left behind: {}", uri, error.what());
  }
}

void WebHdfs::MakeFolders(const std::string& uri) {
  const Call call{.doing = "make the folder", .uri = uri, .method = "PUT", .operation = "MKDIRS"};
  if (!ReadBoolean(Do(call).body).value_or(false)) {
    Fail(call, options_.addresses[active_], ErrorCode::kInvalidArgument,
         "the server does not make it");
  }
}

}  // namespace hearth::storage
