#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <utility>

#include "hearth/base/fd.h"
#include "hearth/storage/file_system.h"

namespace hearth::storage {

// A local file for bytes that are to be uploaded, so that a failed upload can restart from the
// beginning. It has no name, so nothing remains if the process is killed. Must be used by one
// thread.
class SpoolFile {
 public:
  // Creates the file in the first writable folder: Spark's local folders, then TMPDIR and /tmp.
  SpoolFile();

  void Append(std::string_view bytes);
  int fd() const { return fd_.get(); }
  uint64_t size() const { return size_; }

 private:
  Fd fd_;
  std::string folder_;
  uint64_t size_ = 0;
};

// An OutputFile that spools its bytes and uploads them in Commit.
class SpooledOutput : public OutputFile {
 public:
  // Functions that upload or discard the file.
  struct Steps {
    std::function<void(const SpoolFile&)> upload;
    std::function<void()> discard;  // called if the file was not committed; must not throw
  };
  explicit SpooledOutput(Steps steps) : steps_(std::move(steps)) {}
  ~SpooledOutput() override {
    if (!committed_) steps_.discard();
  }

  void Append(std::string_view bytes) override { spool_.Append(bytes); }
  void Commit() override {
    steps_.upload(spool_);
    committed_ = true;
  }

 private:
  Steps steps_;
  SpoolFile spool_;
  bool committed_ = false;
};

}  // namespace hearth::storage
