// HTTP requests with limits on the size and the time of responses. Servers are not trusted: a body
// that is longer than allowed, endless headers, and a protocol other than HTTP are errors.
// Redirects are returned, not followed.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "hearth/base/deadline.h"

namespace hearth::storage {

// Cancels requests and pauses of other threads. Thread-safe.
class Cancellation {
 public:
  void Cancel();
  bool cancelled() const { return cancelled_; }
  // Waits. Returns false if cancelled before the time has passed.
  bool Pause(double seconds) const;

 private:
  std::atomic<bool> cancelled_ = false;
  mutable std::mutex mutex_;
  mutable std::condition_variable changed_;
};

// A request and its limits. The memory to which it refers must outlive it.
struct HttpRequest {
  std::string method, url;
  int body = -1;  // file descriptor of the body, which is sent from its start; -1 for an empty body
  uint64_t body_size = 0;
  std::span<char> store;                    // buffer for the body of a response with status 200
  size_t largest_answer = size_t{1} << 20;  // size limit for the bodies of other responses
  double seconds = 120;  // time limit, to which one second per 100 kB of the body is added
  const Cancellation* cancellation = nullptr;
  // If true, uses a new connection. On a kept connection that the server has closed, libcurl would
  // silently send the request again, and the server might execute it twice.
  bool only_once = false;
  bool negotiate = false;  // authenticates with the process's Kerberos ticket (SPNEGO)
};

// The response to a request.
struct HttpAnswer {
  long status = 0;
  std::string body, location;
  size_t stored = 0;
};

// An HTTP client that keeps connections for later requests. Thread-safe.
class HttpClient {
 public:
  HttpClient();
  ~HttpClient();
  HttpClient(const HttpClient&) = delete;
  HttpClient& operator=(const HttpClient&) = delete;

  // Throws kUnavailable (connection refused or broken), kDeadlineExceeded, kDataLoss (not HTTP, or
  // more data than allowed), kPermissionDenied (certificate or login), kInvalidArgument (unknown
  // host), kAborted (cancelled). Messages contain only the host, because URLs contain tokens.
  HttpAnswer Send(const HttpRequest& request);

 private:
  void* Take();
  void Give(void* handle);

  std::mutex mutex_;
  int process_;  // process that owns the connections; a forked child must not use them
  std::vector<void*> idle_;
};

// Escapes a path or the value of a parameter for a URL. Does not escape '/'.
std::string Escaped(std::string_view text);

// The "host:port" in a URL.
std::string HostOfUrl(const std::string& url);

}  // namespace hearth::storage
