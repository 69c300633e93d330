// A private folder for the files of a test process.
#pragma once

#include <gtest/gtest.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <system_error>

#include "hearth/base/error.h"

namespace hearth {

// A new folder under testing::TempDir(), removed by the destructor, except in a forked child.
class ProcessFolder {
 public:
  ProcessFolder() {
    if (::mkdtemp(path_.data()) == nullptr) ThrowErrno(errno, "creating " + path_);
    path_ += '/';
  }
  ~ProcessFolder() {
    std::error_code problem;
    if (::getpid() == owner_) std::filesystem::remove_all(path_, problem);
  }
  ProcessFolder(const ProcessFolder&) = delete;
  ProcessFolder& operator=(const ProcessFolder&) = delete;

  // The folder's path, which ends with '/'.
  const std::string& path() const { return path_; }

 private:
  std::string path_ = testing::TempDir() + "hearth-test-XXXXXX";
  const pid_t owner_ = ::getpid();
};

// The path of this process's folder, created by the first call.
inline const std::string& TestFolder() {
  static const ProcessFolder folder;
  return folder.path();
}

}  // namespace hearth
