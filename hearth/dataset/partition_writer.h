// Appends the rows of one partition to its file, as batch images one behind the other.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <utility>
#include <vector>

#include "hearth/base/fd.h"
#include "hearth/batch/arrow_c_abi.h"

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

  // Throws kResourceExhausted where the disk is full, else what errno says; then nothing more may
  // be written.
  void Append(std::span<const std::byte> image) {
    Write(image);
    EndImage();
  }
  // The same in parts.
  void Write(std::span<const std::byte> part);
  void EndImage();
  uint64_t bytes() const { return end_; }
  // Gives back room on the disk that no rows took.
  void Close();

 private:
  Fd file_;
  uint64_t end_ = 0;
  uint64_t reserved_ = 0;  // the disk has given room up to here
};

// Cuts record batches into images and hashes their rows. One thread uses it.
class ImageMaker {
 public:
  // Valid until the next image is made.
  using Take = std::function<void(std::span<const std::byte> image)>;

  // Gives the images of a batch to `take`, one by one. With `in_place`, large values that lie in a
  // local file stay there (mapped_file.h). Throws kInvalidArgument for a column type that images
  // lack, kResourceExhausted for a row of more than kMostImageBytes.
  void Make(const ArrowSchema& schema, const ArrowArray& array, bool in_place, const Take& take);

  int64_t rows() const { return rows_; }
  // Of all rows so far (row_hash.h).
  uint64_t hash() const { return hash_; }

 private:
  int64_t rows_ = 0;
  uint64_t hash_ = 0;
  std::vector<uint64_t> image_;
};

// Owns the file, which is empty at first and which no one else writes. One thread uses it.
class PartitionWriter {
 public:
  explicit PartitionWriter(Fd file) : file_(std::move(file)) {}

  // Appends a record batch; returns what is committed with it. Throws as ImageMaker::Make() and
  // PartitionFile::Append().
  Committed Write(const ArrowSchema& schema, const ArrowArray& array);
  uint64_t hash() const { return images_.hash(); }
  void Close() { file_.Close(); }

 private:
  PartitionFile file_;
  ImageMaker images_;
};

}  // namespace hearth::dataset
