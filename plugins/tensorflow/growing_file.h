#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "hearth/storage/file_system.h"

namespace hearth::tensorflow {

// A file that TensorFlow writes. It is created when it is closed or first flushed; later bytes are
// appended. Used by one thread, like TensorFlow's own files.
class GrowingFile {
 public:
  // If `keep` is true, keeps the file's existing content and appends to it.
  GrowingFile(std::string uri, bool keep);

  void Append(std::string_view bytes);
  // Makes everything appended so far visible to readers.
  void Flush();
  int64_t size() const { return size_; }

 private:
  // Called after a failed append: finds out whether the bytes were written.
  void Settle();

  const std::string uri_;
  storage::FileSystem& files_;
  std::unique_ptr<storage::OutputFile> hidden_;  // the file before its first flush, not visible yet
  std::string unflushed_;                        // bytes to append; used after the first flush
  uint64_t flushed_ = 0;                         // size of the visible file, as far as known
  size_t tried_ = 0;  // bytes of unflushed_ that a failed call may have appended
  int64_t size_ = 0;
};

}  // namespace hearth::tensorflow
