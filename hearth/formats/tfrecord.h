// Reads and writes TFRecord files: sequences of records with checksums, optionally gzipped as a
// whole.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "hearth/formats/byte_stream.h"

namespace hearth::formats {

// Default limit of a record's size. A few bytes of gzip can expand without bound, and examples grow
// when parsed (a list of small integers eightfold).
inline constexpr uint64_t kLargestRecordBytes = uint64_t{128} << 20;

// Reads the records of one file. Not thread-safe. Uses memory for 1.5 times the largest record, but
// at most the file's size; for a compressed file, for one block more.
class TfRecordReader {
 public:
  // Detects gzip by the first bytes of `source`. `name` is for error messages.
  TfRecordReader(std::unique_ptr<ByteSource> source, std::string name,
                 uint64_t largest_record_bytes = kLargestRecordBytes);

  // Returns the next record, valid until the next call; nullopt at the end. Throws kDataLoss with
  // the record's number and offset for a wrong checksum or a truncated file, kInvalidArgument for a
  // record that is too large.
  std::optional<std::string_view> Next();

 private:
  // Reads until the buffer has `count` bytes from `begin_` on; returns false if the file has fewer.
  bool Fill(size_t count);
  [[noreturn]] void ThrowDamaged(std::string_view what) const;
  void CheckLength(uint64_t length) const;

  std::unique_ptr<ByteSource> source_;
  std::string name_;
  const uint64_t largest_record_bytes_;
  bool packed_ = false;
  std::vector<char> buffer_;
  size_t begin_ = 0;
  size_t end_ = 0;
  int64_t records_ = 0;
  uint64_t offset_ = 0;  // offset of the next record in the uncompressed bytes
};

// Writes records to one file. Not thread-safe.
class TfRecordWriter {
 public:
  explicit TfRecordWriter(std::unique_ptr<ByteSink> sink) : sink_(std::move(sink)) {}

  void Write(std::string_view record);
  // Completes the file; nothing may be written afterwards.
  void Finish() { sink_->Finish(); }

 private:
  std::unique_ptr<ByteSink> sink_;
};

}  // namespace hearth::formats
