#pragma once

#include <unistd.h>

#include <utility>

namespace hearth {

// Owns one file descriptor and closes it. Modification is not thread-safe.
class Fd {
 public:
  Fd() = default;
  explicit Fd(int fd) : fd_(fd) {}
  Fd(Fd&& other) noexcept : fd_(other.Release()) {}
  Fd& operator=(Fd&& other) noexcept {
    if (this != &other) Reset(other.Release());
    return *this;
  }
  ~Fd() { Reset(); }

  int get() const { return fd_; }
  bool valid() const { return fd_ >= 0; }
  // Releases ownership: the caller closes the descriptor.
  int Release() { return std::exchange(fd_, -1); }
  void Reset(int fd = -1) {
    if (fd_ >= 0) ::close(fd_);
    fd_ = fd;
  }

 private:
  int fd_ = -1;
};

// A close-on-exec duplicate. Throws the matching error of errno, e.g. if no descriptor is free.
Fd Duplicate(int fd);

}  // namespace hearth
