// TFRecord files: records with checksums, one after the other, perhaps packed by gzip as a whole.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "hearth/feed/byte_stream.h"

namespace hearth::feed {

// Not thread-safe. Memory: the largest record, and never more than the file has.
class TfRecordReader {
 public:
  // Looks at the first bytes to tell a packed file. `name` is for messages.
  TfRecordReader(std::unique_ptr<ByteSource> source, std::string name);

  // The next record, valid until the next call; nothing at the end. Throws kDataLoss with the
  // record's number where a checksum is wrong or the file is cut off.
  std::optional<std::string_view> Next();

 private:
  // Has `count` bytes in the buffer from `begin_` on, if the file has them.
  bool Fill(size_t count);
  [[noreturn]] void ThrowDamaged(std::string_view what) const;

  std::unique_ptr<ByteSource> source_;
  std::string name_;
  std::vector<char> buffer_;
  size_t begin_ = 0;
  size_t end_ = 0;
  int64_t records_ = 0;
};

// Not thread-safe.
class TfRecordWriter {
 public:
  explicit TfRecordWriter(std::unique_ptr<ByteSink> sink) : sink_(std::move(sink)) {}

  void Write(std::string_view record);
  // The file is complete; nothing may be written afterwards.
  void Finish() { sink_->Finish(); }

 private:
  std::unique_ptr<ByteSink> sink_;
};

}  // namespace hearth::feed
