// Appends the rows of one partition to its file, as batch images one behind the other.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "hearth/base/fd.h"
#include "hearth/feed/arrow_c_abi.h"

namespace hearth::dataset {

// Images are about this large, unless a single row is larger.
inline constexpr size_t kImageBytes = size_t{4} << 20;
inline constexpr size_t kMostImageBytes = size_t{4} << 30;

// What a writer has written whole, and a reader may use.
struct Committed {
  uint64_t bytes = 0;
  int64_t rows = 0;
};

// Bytes of images at the end of a file, each at a multiple of 64. One thread uses it.
class PartitionFile {
 public:
  explicit PartitionFile(Fd file) : file_(std::move(file)) {}

  // Throws kResourceExhausted where the disk is full, else what errno says. What was written of an
  // image then is overwritten by the next one.
  void Append(std::span<const std::byte> image);
  uint64_t bytes() const { return end_; }
  void Close() { file_.Reset(); }

 private:
  Fd file_;
  uint64_t end_ = 0;
  uint64_t reserved_ = 0;  // the disk has given room up to here
};

// Owns the file, which is empty at first and which no one else writes. One thread uses it.
class PartitionWriter {
 public:
  explicit PartitionWriter(Fd file) : file_(std::move(file)) {}

  // Appends a record batch; returns what is committed with it. Throws kInvalidArgument for a column
  // type that images lack, and as PartitionFile::Append(): then nothing more may be written.
  Committed Write(const ArrowSchema& schema, const ArrowArray& array);
  // Of all rows so far (row_hash.h).
  uint64_t hash() const { return hash_; }
  void Close() { file_.Close(); }

 private:
  PartitionFile file_;
  int64_t rows_ = 0;
  uint64_t hash_ = 0;
  std::vector<uint64_t> image_;  // the one that is being written
};

}  // namespace hearth::dataset
