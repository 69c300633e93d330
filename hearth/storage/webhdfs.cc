#include "hearth/storage/webhdfs.h"

#include <fmt/format.h>

#include <algorithm>
#include <random>
#include <utility>

#include "hearth/base/error.h"
#include "hearth/base/log.h"
#include "hearth/storage/hadoop_token.h"
#include "hearth/storage/read_ahead.h"
#include "hearth/storage/uri.h"
#include "hearth/storage/webhdfs_answer.h"

namespace hearth::storage {
namespace {

constexpr size_t kLargestListing = 64 << 20;  // one response; a batch has 1,000 names
constexpr size_t kMaxEntries = 10'000'000;
constexpr int kMaxRedirects = 4;
constexpr size_t kLargestFetch = 32 << 20;  // fits into the time limit of one response
constexpr int kMaxDamagedAnswers = 3;
// In seconds: short enough for a dropped connection, and long enough for a failover of NameNodes,
// which takes tens of seconds.
constexpr double kFirstPause = 0.1, kLongestPause = 5;

bool IsRedirect(const HttpAnswer& answer) {
  return answer.status >= 301 && answer.status <= 308 && answer.status != 304;
}

// Transient failures: those after which the same call may succeed later, or at another NameNode.
bool MayPass(ErrorCode code) {
  return code == ErrorCode::kUnavailable || code == ErrorCode::kDeadlineExceeded;
}

bool MayPass(Remedy remedy) { return remedy == Remedy::kRepeat || remedy == Remedy::kOther; }

}  // namespace

// Retries of one operation: limits and pauses.
class WebHdfs::Attempts {
 public:
  explicit Attempts(double seconds) : until_(Deadline::After(seconds)) {}

  // Waits before the next attempt; returns false when the time is up.
  bool Next(const Cancellation* cancellation, Deadline sooner) {
    if (until_.expired() || sooner.expired()) return false;
    static thread_local std::minstd_rand random{std::random_device{}()};
    // Between half and all of the pause, at random: the tasks of a job fail together, and must not
    // return together.
    const double share = 0.5 + 0.5 * static_cast<double>(random() % 1000) / 1000;
    const double pause = std::min(pause_ * share, until_.remaining());
    pause_ = std::min(2 * pause_, kLongestPause);
    Cancellation never;
    return (cancellation == nullptr ? &never : cancellation)->Pause(pause);
  }
  bool DamagedAgain() { return ++damaged_ < kMaxDamagedAnswers; }
  bool FirstNewToken() { return !std::exchange(new_token_, true); }
  void NextAddress() { ++moved_; }

  size_t moved() const { return moved_; }
  bool sent = false;  // a file's bytes were sent, perhaps in part
  // The DataNode that failed last, which the NameNode is asked to exclude.
  std::string excluded;
  std::string token;  // the token of this attempt

 private:
  Deadline until_;
  double pause_ = kFirstPause;
  int damaged_ = 0;
  bool new_token_ = false;
  size_t moved_ = 0;
};

WebHdfs::WebHdfs(WebHdfsOptions options)
    : options_(std::move(options)), token_(options_.token, options_.find_token) {}

std::string WebHdfs::Url(const Call& call, const std::string& address,
                         const Attempts& attempts) const {
  // The identity is a token, else the ticket of the connection (SPNEGO), else a name that the
  // server believes, as clusters without Kerberos do.
  std::string url = fmt::format("{}/webhdfs/v1{}?op={}", address,
                                Escaped(ParseRemote(call.uri).path), call.operation);
  if (!attempts.token.empty()) {
    url += "&delegation=" + Escaped(attempts.token);
  } else if (!options_.kerberos) {
    url += "&user.name=" + Escaped(options_.user);
  }
  if (!attempts.excluded.empty()) url += "&excludedatanodes=" + Escaped(attempts.excluded);
  return url;
}

void WebHdfs::Fail(const Call& call, const std::string& address, ErrorCode code,
                   const std::string& text) const {
  const std::string own =
      options_.kerberos ? "the owner of the Kerberos ticket" : "user " + options_.user;
  const std::string token = token_.Get();
  const std::string who = token.empty() ? own : "the owner of a delegation token";
  throw Error(code, WithoutToken(fmt::format("cannot {} {} as {} by {}: {}", call.doing, call.uri,
                                             who, address, text),
                                 token));
}

HttpAnswer WebHdfs::Try(const Call& call, const std::string& address, Attempts* attempts) {
  HttpRequest request;
  request.method = call.method;
  // Kept with the attempt: another thread may replace token_ before this attempt is refused.
  attempts->token = token_.Get();
  request.url = Url(call, address, *attempts);
  // Excluded for one attempt only. If all replicas are on that DataNode, the next one may ask for
  // it again.
  attempts->excluded.clear();
  request.largest_answer = call.largest_answer;
  request.seconds = options_.answer_seconds;
  request.cancellation = call.cancellation;
  // libcurl must not repeat these silently: a second rename does not find its source, a second
  // append doubles the bytes.
  request.only_once = call.lost != nullptr || !call.repeat;
  request.negotiate = options_.kerberos && attempts->token.empty();
  const bool has_data_node = call.body != nullptr || !call.store.empty();
  // Only DataNodes receive a body; OPEN returns its bytes from there or, with HttpFS, directly.
  request.store = call.store;
  for (int redirects = 0;; ++redirects) {
    const bool at_data = redirects > 0;
    if (at_data && call.body != nullptr) {
      request.body = call.body->fd();
      request.body_size = call.body->size();
      attempts->sent = true;
    }
    HttpAnswer answer;
    try {
      answer = client_.Send(request);
    } catch (const Error&) {
      if (at_data) attempts->excluded = HostOfUrl(request.url);
      throw;
    }
    if (!IsRedirect(answer)) {
      // Without a redirect the body has not been sent.
      Require(answer.status >= 300 || call.body == nullptr || at_data, ErrorCode::kDataLoss,
              "the server took a file without asking for its bytes");
      if (answer.status >= 500 && at_data) attempts->excluded = HostOfUrl(request.url);
      return answer;
    }
    Require(redirects < kMaxRedirects, ErrorCode::kDataLoss, "the server redirects in a loop");
    const std::string_view scheme = Scheme(answer.location);
    Require(scheme == "http" || scheme == "https", ErrorCode::kDataLoss,
            "the server redirects to an address that is not http: or https:");
    // The redirect's address contains the token. Hadoop's client follows redirects for these
    // operations only.
    Require(has_data_node, ErrorCode::kDataLoss,
            "the server redirects an operation that it should handle; is this the web address of a "
            "NameNode or of HttpFS?");
    Require(scheme == "https" || !request.url.starts_with("https:"), ErrorCode::kPermissionDenied,
            "the server redirects from https: to http:, which is not encrypted");
    request.url = answer.location;
    request.negotiate = false;  // the address contains a token if needed
  }
}

// Each turn makes one attempt and classifies its outcome: return it, repeat it with a newer token,
// pause and repeat it, perhaps at the next NameNode, or fail. `Call::lost` and `once` prevent a
// repetition that could execute the call twice.
HttpAnswer WebHdfs::Do(const Call& call) {
  Attempts attempts(call.repeat ? options_.repeat_seconds : 0);
  const Deadline first_contact = Deadline::After(options_.first_contact_seconds);
  for (bool logged = false;;) {
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
                   fmt::format("received {} bytes instead of {}: has the file been replaced?",
                               answer.stored, call.store.size())};
      } else {
        refusal = ReadRefusal(answer.status, answer.body);
        // A permanent refusal, such as a missing file, comes from an active NameNode: start there
        // next time.
        if (!MayPass(refusal.remedy)) active_ = index;
      }
    } catch (const Error& error) {
      const bool repeat = MayPass(error.code()) || error.code() == ErrorCode::kDataLoss;
      refusal = {error.code(), repeat ? Remedy::kRepeat : Remedy::kNone, error.message()};
      // The request may have been executed although no response arrived. A call whose body is
      // needed has not been executed before the body was sent.
      if (call.lost != nullptr && (!call.once || attempts.sent)) *call.lost = true;
      attempts.NextAddress();
    }
    if (refusal.remedy == Remedy::kOther) attempts.NextAddress();
    // Appended bytes may already be in the file.
    const bool may_repeat = !(call.once && attempts.sent);
    // Also if there was no token when the file system was opened.
    const bool wants_token =
        refusal.remedy == Remedy::kNewToken ||
        (attempts.token.empty() && refusal.code == ErrorCode::kPermissionDenied);
    if (wants_token && may_repeat && attempts.FirstNewToken() && token_.Replace(attempts.token)) {
      log::Info("Using a newer delegation token: {}", WithoutToken(refusal.text, attempts.token));
      continue;
    }
    // Before the first response the address is probably wrong; waiting two minutes would hide that.
    const bool again =
        MayPass(refusal.remedy) && may_repeat &&
        (refusal.code != ErrorCode::kDataLoss || attempts.DamagedAgain()) &&
        attempts.Next(call.cancellation, contacted_ ? Deadline::Never() : first_contact);
    if (!again) Fail(call, address, refusal.code, WithoutToken(refusal.text, attempts.token));
    if (!std::exchange(logged, true)) {
      log::Warning("Retrying to {} {}: {}", call.doing, call.uri,
                   WithoutToken(refusal.text, attempts.token));
    }
  }
}

std::optional<FileStatus> WebHdfs::Stat(const std::string& uri) {
  try {
    const Call call{.doing = "inspect", .uri = uri, .method = "GET", .operation = "GETFILESTATUS"};
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
      // Servers before Hadoop 2.9 do not know LISTSTATUS_BATCH and refuse it as an invalid
      // operation.
      if (error.code() != ErrorCode::kInvalidArgument || !found.empty()) throw;
      auto whole = ListOnce(folder);  // throws if the folder is the problem
      has_batches_ = false;
      return whole;
    }
    if (!listing.is_folder)
      Fail(call, options_.addresses[active_], ErrorCode::kInvalidArgument, "it is not a folder");
    // The server continues after the name that it is given. One that repeats names would be asked
    // for ever.
    const bool moves = !listing.entries.empty() &&
                       (found.empty() || found.back().uri < listing.entries.front().uri);
    std::ranges::move(listing.entries, std::back_inserter(found));
    if (!listing.more) break;
    if (!moves || found.size() > kMaxEntries) {
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
  for (size_t done = 0; done < out.size();) {
    const auto chunk = out.subspan(done, std::min(out.size() - done, kLargestFetch));
    Call call{.doing = "read", .uri = uri, .method = "GET"};
    call.operation = fmt::format("OPEN&offset={}&length={}", offset + done, chunk.size());
    call.store = chunk;
    call.cancellation = &cancellation;
    Do(call);
    done += chunk.size();
  }
}

void WebHdfs::CheckSame(const std::string& uri, uint64_t id, const Cancellation& cancellation) {
  // HttpFS reports no ids; there, a replaced file is noticed only if it is shorter.
  if (id == 0) return;
  Call call{.doing = "read", .uri = uri, .method = "GET", .operation = "GETFILESTATUS"};
  call.cancellation = &cancellation;
  const uint64_t now = ReadStatus(Do(call).body, uri).id;
  if (now == id) return;
  Fail(call, options_.addresses[active_], ErrorCode::kDataLoss,
       "it was replaced while it was read; read it again");
}

std::unique_ptr<InputFile> WebHdfs::Open(const std::string& uri) {
  const Call call{.doing = "open", .uri = uri, .method = "GET", .operation = "GETFILESTATUS"};
  const FileStatus status = ReadStatus(Do(call).body, uri);
  if (status.is_folder) {
    Fail(call, options_.addresses[active_], ErrorCode::kInvalidArgument, "it is a folder");
  }
  const auto fetch = [this, uri, id = status.id](uint64_t offset, char* data, size_t size,
                                                 const Cancellation& cancellation) {
    Fetch(uri, offset, {data, size}, cancellation);
    // Each request opens the name again; the bytes of two files must not be mixed.
    CheckSame(uri, id, cancellation);
  };
  return std::make_unique<ReadAhead>(fetch, status.size);
}

}  // namespace hearth::storage
