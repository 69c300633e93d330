// A file that TensorFlow writes: it appears when it is closed, or at the first flush, behind which
// what comes is appended. One thread, as TensorFlow's own files.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "hearth/storage/file_system.h"

namespace hearth::tensorflow {

class GrowingFile {
 public:
  // `keep`: what is in the file stays, in front.
  GrowingFile(std::string uri, bool keep);

  void Append(std::string_view bytes);
  // All that was appended can be read by others.
  void Flush();
  int64_t size() const { return size_; }

 private:
  // After an append that failed: finds out whether it was carried out.
  void Settle();

  const std::string uri_;
  storage::FileSystem& files_;
  std::unique_ptr<storage::OutputFile> hidden_;  // until the first flush
  std::string unflushed_;                        // after it
  uint64_t flushed_ = 0;                         // the file's bytes, as far as is known
  size_t tried_ = 0;  // so many of unflushed_ may have been appended by a call that failed
  int64_t size_ = 0;
};

}  // namespace hearth::tensorflow
