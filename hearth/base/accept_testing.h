// For tests: accept4 with errors of the test's choice, in place of the C library's. To be included
// by one file of a program. Any thread.
#pragma once

#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <mutex>
#include <utility>
#include <vector>

namespace hearth {

class FailingAccept {
 public:
  // The next calls fail with these errors, in turn.
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

  // How many of these errors are left.
  static size_t left() {
    const std::lock_guard lock(mutex_);
    return errors_.size();
  }

  // The error for this call, 0 for none.
  static int Next() {
    const std::lock_guard lock(mutex_);
    if (errors_.empty()) return 0;
    const int error = errors_.back();
    errors_.pop_back();
    return error;
  }

 private:
  static inline std::mutex mutex_;
  static inline std::vector<int> errors_;  // the next one last
};

}  // namespace hearth

// A connection waits in the queue even where the call fails, as it does without descriptors.
extern "C" int accept4(int fd, sockaddr* address, socklen_t* size, int flags) {
  if (const int error = hearth::FailingAccept::Next()) {
    errno = error;
    return -1;
  }
  return static_cast<int>(::syscall(SYS_accept4, fd, address, size, flags));
}
