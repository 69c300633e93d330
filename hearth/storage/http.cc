#include "hearth/storage/http.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <cerrno>
#include <cstring>
#include <memory>

#include "hearth/base/error.h"
#include "hearth/storage/curl_library.h"

namespace hearth::storage {
namespace {

// The kernel would wait two minutes for a host that drops packets.
constexpr long kConnectSeconds = 10;
// An upload fails if its average rate is below this number of bytes per second: a tenth of a 10
// Mbit/s link.
constexpr double kSlowestBytes = 100e3;
// Number of idle connections to keep, enough for some simultaneous readers and writers.
constexpr size_t kMaxIdle = 8;
// A redirect to a DataNode contains a path, which has at most 8,000 characters before escaping, and
// a token.
constexpr size_t kLargestLocation = 16 << 10;
// Much more than the headers of any Hadoop server, even with Kerberos negotiation.
constexpr size_t kLargestHead = 256 << 10;

// The state of one request, which its callbacks share.
struct Exchange {
  const HttpRequest& request;
  CURL* handle;
  HttpAnswer answer;
  uint64_t sent = 0;
  bool too_long = false;
  size_t head = 0;
  bool head_too_long = false;
  int read_errno = 0;
};

// libcurl calls this for each part of a body. If it returns anything but the size, libcurl fails
// with CURLE_WRITE_ERROR, and Check() finds the reason in the Exchange.
size_t Receive(char* data, size_t one, size_t count, void* context) {
  const size_t size = one * count;
  auto* exchange = static_cast<Exchange*>(context);
  long status = 0;
  Curl().get(exchange->handle, CURLINFO_RESPONSE_CODE, &status);
  HttpAnswer& answer = exchange->answer;
  // Only the body of a successful response contains bytes of the file. Bodies of redirects and
  // errors are text.
  const std::span<char> store = exchange->request.store;
  if (status == 200 && !store.empty()) {
    exchange->too_long = size > store.size() - answer.stored;
    if (exchange->too_long) return 0;
    std::memcpy(store.data() + answer.stored, data, size);
    answer.stored += size;
    return size;
  }
  exchange->too_long = size > exchange->request.largest_answer - answer.body.size();
  if (exchange->too_long) return 0;
  answer.body.append(data, size);
  return size;
}

// Limits the number of header bytes, because libcurl stores each line, and older versions do not
// limit the number of lines.
size_t ReceiveHead(char*, size_t one, size_t count, void* context) {
  const size_t size = one * count;
  auto* exchange = static_cast<Exchange*>(context);
  exchange->head += size;
  exchange->head_too_long = exchange->head > kLargestHead;
  return exchange->head_too_long ? 0 : size;
}

// Reads the next bytes of the body for libcurl. Uses pread with Exchange::sent as the offset,
// because a retry sends the same spooled file again from its start.
size_t SendBody(char* data, size_t one, size_t capacity, void* context) {
  auto* exchange = static_cast<Exchange*>(context);
  const uint64_t left = exchange->request.body_size - exchange->sent;
  ssize_t count = 0;
  do {
    count = pread(exchange->request.body, data, std::min<uint64_t>(capacity, left),
                  static_cast<off_t>(exchange->sent));
  } while (count < 0 && errno == EINTR);
  if (count < 0) {
    exchange->read_errno = errno;
    return CURL_READFUNC_ABORT;
  }
  exchange->sent += static_cast<uint64_t>(count);
  return static_cast<size_t>(count);
}

// libcurl calls this to send the body again, such as after a login, or if a connection turns out to
// be closed.
int SeekBody(void* context, curl_off_t offset, int origin) {
  static_cast<Exchange*>(context)->sent = static_cast<uint64_t>(offset);
  return origin == SEEK_SET ? CURL_SEEKFUNC_OK : CURL_SEEKFUNC_CANTSEEK;
}

// libcurl calls this about once a second while it waits, and more often during a transfer.
int Continue(void* context, curl_off_t, curl_off_t, curl_off_t, curl_off_t) {
  const Cancellation* cancellation = static_cast<Exchange*>(context)->request.cancellation;
  return cancellation != nullptr && cancellation->cancelled() ? 1 : 0;
}

void SetLimits(const HttpRequest& request, CURL* handle) {
  const CurlLibrary& curl = Curl();
  // Without this, libcurl uses SIGALRM to limit the resolver's time, which is not safe with
  // threads.
  curl.set(handle, CURLOPT_NOSIGNAL, 1L);
  curl.set(handle, CURLOPT_PROTOCOLS, static_cast<long>(CURLPROTO_HTTP | CURLPROTO_HTTPS));
  curl.set(handle, CURLOPT_FOLLOWLOCATION, 0L);
  curl.set(handle, CURLOPT_PROXY, "");  // no proxy: hosts of a cluster are reached directly
  curl.set(handle, CURLOPT_HTTP09_ALLOWED, 0L);
  curl.set(handle, CURLOPT_HTTP_VERSION, static_cast<long>(CURL_HTTP_VERSION_1_1));
  curl.set(handle, CURLOPT_CONNECTTIMEOUT, kConnectSeconds);
  // A transfer of any size fails if it stalls for request.seconds. The limit for the whole request
  // is longer for a larger body.
  curl.set(handle, CURLOPT_LOW_SPEED_LIMIT, 1L);
  curl.set(handle, CURLOPT_LOW_SPEED_TIME, static_cast<long>(request.seconds + 0.999));
  const double whole = request.seconds + static_cast<double>(request.body_size) / kSlowestBytes;
  curl.set(handle, CURLOPT_TIMEOUT_MS, static_cast<long>(whole * 1000));
  curl.set(handle, CURLOPT_BUFFERSIZE, 256L << 10);
}

void SetExchange(Exchange* exchange, curl_slist* headers) {
  const CurlLibrary& curl = Curl();
  CURL* handle = exchange->handle;
  const HttpRequest& request = exchange->request;
  curl.set(handle, CURLOPT_URL, request.url.c_str());
  curl.set(handle, CURLOPT_HTTPHEADER, headers);
  curl.set(handle, CURLOPT_FRESH_CONNECT, request.only_once ? 1L : 0L);
  if (request.method == "PUT" || request.method == "POST") {
    curl.set(handle, CURLOPT_UPLOAD, 1L);
    curl.set(handle, CURLOPT_INFILESIZE_LARGE, static_cast<curl_off_t>(request.body_size));
    curl.set(handle, CURLOPT_READFUNCTION, SendBody);
    curl.set(handle, CURLOPT_READDATA, exchange);
    curl.set(handle, CURLOPT_SEEKFUNCTION, SeekBody);
    curl.set(handle, CURLOPT_SEEKDATA, exchange);
    curl.set(handle, CURLOPT_UPLOAD_BUFFERSIZE, 1L << 20);
  }
  if (request.negotiate) {
    curl.set(handle, CURLOPT_HTTPAUTH, static_cast<long>(CURLAUTH_NEGOTIATE));
    curl.set(handle, CURLOPT_USERPWD, ":");  // no user: the Kerberos ticket determines it
  }
  // Sets methods such as DELETE. Must follow CURLOPT_UPLOAD, which sets the method to PUT.
  curl.set(handle, CURLOPT_CUSTOMREQUEST, request.method.c_str());
  curl.set(handle, CURLOPT_WRITEFUNCTION, Receive);
  curl.set(handle, CURLOPT_WRITEDATA, exchange);
  curl.set(handle, CURLOPT_HEADERFUNCTION, ReceiveHead);
  curl.set(handle, CURLOPT_HEADERDATA, exchange);
  curl.set(handle, CURLOPT_NOPROGRESS, 0L);
  curl.set(handle, CURLOPT_XFERINFOFUNCTION, Continue);
  curl.set(handle, CURLOPT_XFERINFODATA, exchange);
}

ErrorCode CodeOf(CURLcode result) {
  switch (result) {
    case CURLE_COULDNT_RESOLVE_HOST:  // usually a misspelt host name, so retries do not help
    case CURLE_URL_MALFORMAT:
      return ErrorCode::kInvalidArgument;
    case CURLE_OPERATION_TIMEDOUT:
      return ErrorCode::kDeadlineExceeded;
    case CURLE_ABORTED_BY_CALLBACK:
      return ErrorCode::kAborted;
    case CURLE_AUTH_ERROR:
    case CURLE_LOGIN_DENIED:
    case CURLE_PEER_FAILED_VERIFICATION:
    case CURLE_SSL_CONNECT_ERROR:
    case CURLE_SSL_CERTPROBLEM:
    case CURLE_SSL_CACERT_BADFILE:
      return ErrorCode::kPermissionDenied;
    case CURLE_OUT_OF_MEMORY:
      return ErrorCode::kResourceExhausted;
    case CURLE_UNSUPPORTED_PROTOCOL:  // libcurl reports this for a response that is not HTTP
    case CURLE_WRITE_ERROR:
    case CURLE_WEIRD_SERVER_REPLY:
    case CURLE_BAD_CONTENT_ENCODING:
      return ErrorCode::kDataLoss;
    default:
      return ErrorCode::kUnavailable;  // connection refused, reset or closed early
  }
}

void Check(CURLcode result, const Exchange& exchange, const char* detail) {
  if (result == CURLE_OK) return;
  const std::string host = HostOfUrl(exchange.request.url);
  // The callbacks' own reasons are checked first, because libcurl reports them only as a failed
  // write or read.
  if (exchange.head_too_long) {
    Throw(ErrorCode::kDataLoss, "{} sent more than the {} bytes allowed for response headers", host,
          kLargestHead);
  }
  if (exchange.too_long) {
    const bool stored = exchange.answer.stored > 0 || exchange.answer.body.empty();
    Throw(ErrorCode::kDataLoss, "{} sent more than the {} bytes allowed", host,
          stored && !exchange.request.store.empty() ? exchange.request.store.size()
                                                    : exchange.request.largest_answer);
  }
  if (exchange.read_errno != 0) {
    ThrowErrno(exchange.read_errno, "cannot read the bytes to send to " + host);
  }
  const bool has_detail = detail[0] != '\0' && result != CURLE_COULDNT_RESOLVE_HOST;
  Throw(CodeOf(result), "{} ({})", has_detail ? detail : Curl().text_of(result), host);
}

}  // namespace

void Cancellation::Cancel() {
  const std::lock_guard lock(mutex_);
  cancelled_ = true;
  changed_.notify_all();
}

bool Cancellation::Pause(double seconds) const {
  std::unique_lock lock(mutex_);
  return !changed_.wait_until(lock, Deadline::After(seconds).at(),
                              [this] { return cancelled_.load(); });
}

HttpClient::HttpClient() : process_(getpid()) {}

HttpClient::~HttpClient() {
  // In a forked child, the connections are abandoned; see Take().
  if (process_ != getpid()) return;
  for (void* handle : idle_) Curl().cleanup(handle);
}

void* HttpClient::Take() {
  {
    const std::lock_guard lock(mutex_);
    if (process_ != getpid()) {
      // Parent and child share these sockets. Each would read the other's responses, and closing
      // TLS here would end the parent's session. So the child abandons them.
      idle_.clear();
      process_ = getpid();
    }
    if (!idle_.empty()) {
      void* handle = idle_.back();
      idle_.pop_back();
      return handle;
    }
  }
  void* handle = Curl().init();
  Require(handle != nullptr, ErrorCode::kResourceExhausted, "libcurl is out of memory");
  return handle;
}

// Keeps the connection for a later request. curl_easy_reset drops the handle's pointers to the
// request's memory but does not close the connection.
void HttpClient::Give(void* handle) {
  Curl().reset(handle);
  {
    const std::lock_guard lock(mutex_);
    if (idle_.size() < kMaxIdle) {
      idle_.push_back(handle);
      return;
    }
  }
  Curl().cleanup(handle);
}

HttpAnswer HttpClient::Send(const HttpRequest& request) {
  const CurlLibrary& curl = Curl();
  const auto give = [this](void* taken) { Give(taken); };
  const std::unique_ptr<void, decltype(give)> handle(Take(), give);
  Exchange exchange{request, handle.get(), {}};
  char detail[CURL_ERROR_SIZE] = "";
  SetLimits(request, handle.get());
  curl.set(handle.get(), CURLOPT_ERRORBUFFER, detail);
  curl_slist* headers = curl.append(nullptr, "Content-Type: application/octet-stream");
  // Disables "Expect: 100-continue", because servers that do not support it cost a second.
  headers = curl.append(headers, "Expect:");
  const std::unique_ptr<curl_slist, decltype(curl.free_list)> kept(headers, curl.free_list);
  SetExchange(&exchange, headers);
  const CURLcode result = curl.perform(handle.get());
  Check(result, exchange, detail);
  curl.get(handle.get(), CURLINFO_RESPONSE_CODE, &exchange.answer.status);
  char* location = nullptr;
  curl.get(handle.get(), CURLINFO_REDIRECT_URL, &location);
  if (location != nullptr) {
    exchange.answer.location = location;
    Require(exchange.answer.location.size() <= kLargestLocation, ErrorCode::kDataLoss,
            "{} redirects to an address of {} bytes, more than the limit of {}",
            HostOfUrl(request.url), exchange.answer.location.size(), kLargestLocation);
  }
  return std::move(exchange.answer);
}

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

std::string HostOfUrl(const std::string& url) {
  const size_t start = url.find("://");
  const size_t host = start == std::string::npos ? 0 : start + 3;
  const std::string authority = url.substr(host, url.find_first_of("/?#", host) - host);
  return authority.substr(authority.rfind('@') + 1);  // without user and password
}

}  // namespace hearth::storage
