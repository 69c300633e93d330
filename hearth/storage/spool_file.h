#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <utility>

#include "hearth/base/fd.h"
#include "hearth/storage/file_system.h"

namespace hearth::storage {

// Bytes kept on this machine until they are uploaded, so that a failed upload can restart from the
// beginning. The file has no name: a process that is killed leaves nothing behind. One thread.
class SpoolFile {
 public:
  // Uses the first writable local folder of Spark, or else TMPDIR or /tmp.
  SpoolFile();

  void Append(std::string_view bytes);
  int fd() const { return fd_.get(); }
  uint64_t size() const { return size_; }

 private:
  Fd fd_;
  std::string folder_;
  uint64_t size_ = 0;
};

// An OutputFile that spools its bytes; Commit uploads them.
class SpooledOutput : public OutputFile {
 public:
  // The end of a file: how its bytes are uploaded or discarded.
  struct Steps {
    std::function<void(const SpoolFile&)> upload;
    std::function<void()> discard;  // called if not committed; must not throw
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
