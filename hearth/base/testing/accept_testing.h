#pragma once

#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <mutex>
#include <utility>
#include <vector>

namespace hearth {

// Replaces accept4() by a version that fails with the errors that a test injects. Include this file
// in only one file of a program. Thread-safe.
class FailingAccept {
 public:
  // The next calls fail with these errors, in order.
  explicit FailingAccept(std::vector<int> errors) {
    const std::lock_guard lock(mutex_);
    errors_ = {errors.rbegin(), errors.rend()};
  }
  ~FailingAccept() {
    const std::lock_guard lock(mutex_);
    errors_.clear();
  }
  FailingAccept(const FailingAccept&) = delete;
  FailingAccept& operator=(const FailingAccept&) = delete;

  // The number of remaining errors.
  static size_t left() {
    const std::lock_guard lock(mutex_);
    return errors_.size();
  }

  // Takes the error for this call of accept4(); 0 if the call is to succeed.
  static int Next() {
    const std::lock_guard lock(mutex_);
    if (errors_.empty()) return 0;
    const int error = errors_.back();
    errors_.pop_back();
    return error;
  }

 private:
  static inline std::mutex mutex_;
  static inline std::vector<int> errors_;  // the next error is last
};

}  // namespace hearth

// An injected error leaves the connection in the queue, as the kernel does when descriptors run
// out.
extern "C" int accept4(int fd, sockaddr* address, socklen_t* size, int flags) {
  if (const int error = hearth::FailingAccept::Next()) {
    errno = error;
    return -1;
  }
  return static_cast<int>(::syscall(SYS_accept4, fd, address, size, flags));
}
