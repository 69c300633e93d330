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

constexpr size_t kLargestListing = 64 << 20;  // limit for one response; a batch has 1,000 names
constexpr size_t kMaxEntries = 10'000'000;
constexpr int kMaxRedirects = 4;
// small enough to arrive within the time limit of one response
constexpr size_t kLargestFetch = 32 << 20;
constexpr int kMaxDamagedAnswers = 3;
// In seconds. The first pause suits a dropped connection. The longest suits a failover of
// NameNodes, which takes tens of seconds.
constexpr double kFirstPause = 0.1, kLongestPause = 5;

bool IsRedirect(const HttpAnswer& answer) {
  return answer.status >= 301 && answer.status <= 308 && answer.status != 304;
}

// True for transient failures, after which the call may succeed later or at another NameNode.
bool MayPass(ErrorCode code) {
  return code == ErrorCode::kUnavailable || code == ErrorCode::kDeadlineExceeded;
}

bool MayPass(Remedy remedy) { return remedy == Remedy::kRepeat || remedy == Remedy::kOther; }

}  // namespace

// The state of one operation across its attempts: their limits, the pauses between them, and what
// the current attempt has sent.
class WebHdfs::Attempts {
 public:
  explicit Attempts(double seconds) : until_(Deadline::After(seconds)) {}

  // Waits before the next attempt. Returns false if the deadline has passed or the operation is
  // cancelled.
  bool Next(const Cancellation* cancellation, Deadline sooner) {
    if (until_.expired() || sooner.expired()) return false;
    static thread_local std::minstd_rand random{std::random_device{}()};
    // Waits a random time, at least half of the pause and at most all of it. The tasks of a job
    // fail at the same time and must not all retry at the same time.
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
  bool sent = false;  // true if bytes of a file were sent, perhaps only some
  // The DataNode that failed last; the NameNode is asked to exclude it.
  std::string excluded;
  std::string token;  // the token sent in the current attempt

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
  // Authenticates with a token if there is one; otherwise with the connection's ticket (SPNEGO), or
  // with a user name that the server trusts, as in clusters without Kerberos.
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
  // Stored with the attempt, because another thread may replace token_ before this attempt is
  // refused.
  attempts->token = token_.Get();
  request.url = Url(call, address, *attempts);
  // A DataNode is excluded for one attempt only. If all replicas are on it, the next attempt may
  // use it again.
  attempts->excluded.clear();
  request.largest_answer = call.largest_answer;
  request.seconds = options_.answer_seconds;
  request.cancellation = call.cancellation;
  // libcurl must not silently repeat requests that have no effect or another effect the second
  // time: a second rename would not find its source, and a second append would append the bytes
  // twice.
  request.only_once = call.lost != nullptr || !call.repeat;
  request.negotiate = options_.kerberos && attempts->token.empty();
  const bool has_data_node = call.body != nullptr || !call.store.empty();
  // Only DataNodes receive a body. OPEN returns the file's bytes from a DataNode or, with HttpFS,
  // directly.
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
      // The body is sent only after a redirect, so this response cannot be a success.
      Require(answer.status >= 300 || call.body == nullptr || at_data, ErrorCode::kDataLoss,
              "the server accepted a file without requesting its data");
      if (answer.status >= 500 && at_data) attempts->excluded = HostOfUrl(request.url);
      return answer;
    }
    Require(redirects < kMaxRedirects, ErrorCode::kDataLoss, "the server redirects in a loop");
    const std::string_view scheme = Scheme(answer.location);
    Require(scheme == "http" || scheme == "https", ErrorCode::kDataLoss,
            "the server redirects to an address that is not http: or https:");
    // The address of a redirect contains the token. So, like in Hadoop's client, redirects are
    // followed only for operations that transfer data.
    Require(has_data_node, ErrorCode::kDataLoss,
            "the server redirects an operation that it should handle; is this the web address of a "
            "NameNode or of HttpFS?");
    Require(scheme == "https" || !request.url.starts_with("https:"), ErrorCode::kPermissionDenied,
            "the server redirects from https: to http:, which is not encrypted");
    request.url = answer.location;
    request.negotiate = false;  // if a token is needed, the address contains it
  }
}

// Each iteration makes one attempt and then, depending on its result, returns the response, repeats
// the call with a newer token, pauses and repeats it (perhaps at the next NameNode), or throws.
// `Call::lost` and `once` prevent a repetition that might execute the call twice.
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
        // A permanent error, such as a missing file, was sent by an active NameNode, so the next
        // call starts there.
        if (!MayPass(refusal.remedy)) active_ = index;
      }
    } catch (const Error& error) {
      const bool repeat = MayPass(error.code()) || error.code() == ErrorCode::kDataLoss;
      refusal = {error.code(), repeat ? Remedy::kRepeat : Remedy::kNone, error.message()};
      // The server may have executed the request although no response arrived, except for a call
      // whose body was not yet sent.
      if (call.lost != nullptr && (!call.once || attempts.sent)) *call.lost = true;
      attempts.NextAddress();
    }
    if (refusal.remedy == Remedy::kOther) attempts.NextAddress();
    // If the body was sent, the server may already have appended it to the file.
    const bool may_repeat = !(call.once && attempts.sent);
    // A token may have become available since the file system was opened without one.
    const bool wants_token =
        refusal.remedy == Remedy::kNewToken ||
        (attempts.token.empty() && refusal.code == ErrorCode::kPermissionDenied);
    if (wants_token && may_repeat && attempts.FirstNewToken() && token_.Replace(attempts.token)) {
      log::Info("Using a newer delegation token: {}", WithoutToken(refusal.text, attempts.token));
      continue;
    }
    // If there was no response so far, the address is probably wrong, and waiting two minutes would
    // hide that.
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
      // Servers before Hadoop 2.9 reject LISTSTATUS_BATCH as an invalid operation.
      if (error.code() != ErrorCode::kInvalidArgument || !found.empty()) throw;
      auto whole = ListOnce(folder);  // throws if the folder, not the operation, was invalid
      has_batches_ = false;
      return whole;
    }
    if (!listing.is_folder)
      Fail(call, options_.addresses[active_], ErrorCode::kInvalidArgument, "it is not a folder");
    // The server continues after the name in the request. If it repeated names, the loop would
    // never end.
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
  // HttpFS has no file ids, so a replaced file is detected only if it is shorter.
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
    // Each request opens the file by name again. The id is checked so that bytes of two files are
    // not mixed.
    CheckSame(uri, id, cancellation);
  };
  return std::make_unique<ReadAhead>(fetch, status.size);
}

}  // namespace hearth::storage
