#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "hearth/storage/file_system.h"

namespace hearth::tensorflow {

// A file that TensorFlow writes: created when it is closed or first flushed, then appended to. One
// thread, like TensorFlow's own files.
class GrowingFile {
 public:
  // `keep`: keeps the file's content and appends to it.
  GrowingFile(std::string uri, bool keep);

  void Append(std::string_view bytes);
  // Makes everything appended so far visible to readers.
  void Flush();
  int64_t size() const { return size_; }

 private:
  // After a failed append: finds out whether it was carried out.
  void Settle();

  const std::string uri_;
  storage::FileSystem& files_;
  std::unique_ptr<storage::OutputFile> hidden_;  // until the first flush
  std::string unflushed_;                        // after the first flush
  uint64_t flushed_ = 0;                         // bytes of the file, as far as known
  size_t tried_ = 0;  // bytes of unflushed_ that a failed call may have appended
  int64_t size_ = 0;
};

}  // namespace hearth::tensorflow
