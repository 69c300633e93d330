// HTTP requests whose answers are limited in size and time. What the other side sends is not
// trusted: a body longer than announced, an endless header or a protocol other than HTTP is an
// error. Redirects are returned, not followed.
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

// Ends requests and pauses of other threads. Any thread.
class Cancellation {
 public:
  void Cancel();
  bool cancelled() const { return cancelled_; }
  // False when it was cancelled before the time was over.
  bool Pause(double seconds) const;

 private:
  std::atomic<bool> cancelled_ = false;
  mutable std::mutex mutex_;
  mutable std::condition_variable changed_;
};

struct HttpRequest {
  std::string method, url;
  int body = -1;  // the file that is sent, from its beginning; none: an empty body
  uint64_t body_size = 0;
  std::span<char> store;                    // where the body of an answer of 200 goes
  size_t largest_answer = size_t{1} << 20;  // of any other
  double seconds = 120;                     // for the whole, and one more per 100 kB of the body
  const Cancellation* cancellation = nullptr;
  // On a new connection. If a kept one has ended meanwhile, libcurl sends the request again by
  // itself, and nobody would know that it may have been carried out twice.
  bool only_once = false;
  bool negotiate = false;  // logs in by the process's Kerberos ticket (SPNEGO)
};

struct HttpAnswer {
  long status = 0;
  std::string body, location;
  size_t stored = 0;
};

// Keeps connections for the next request. Any thread.
class HttpClient {
 public:
  HttpClient();
  ~HttpClient();
  HttpClient(const HttpClient&) = delete;
  HttpClient& operator=(const HttpClient&) = delete;

  // Throws kUnavailable (nobody there, or a connection that broke), kDeadlineExceeded, kDataLoss
  // (not HTTP, or more than announced), kPermissionDenied (a certificate, a login),
  // kInvalidArgument (no such host), kAborted (cancelled). Messages name the host alone: URLs hold
  // tokens.
  HttpAnswer Send(const HttpRequest& request);

 private:
  void* Take();
  void Give(void* handle);

  std::mutex mutex_;
  int process_;  // whose connections these are: a forked child must not use its parent's
  std::vector<void*> idle_;
};

// Of a path or a parameter's value in a URL; '/' may stand in both.
std::string Escaped(std::string_view text);

// "host:port" of a URL.
std::string HostOfUrl(const std::string& url);

}  // namespace hearth::storage
