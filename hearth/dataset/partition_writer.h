// Appends the rows of one partition to its file, as consecutive batch images.
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

// Approximate size of an image, unless a single row is larger.
inline constexpr size_t kImageBytes = size_t{4} << 20;
inline constexpr size_t kMaxImageBytes = size_t{4} << 30;

// Amount of complete data in a file, which readers may use.
struct Committed {
  uint64_t bytes = 0;
  int64_t rows = 0;
};

// Appends images to a file, each at a multiple of 64 bytes. One thread uses it.
class PartitionFile {
 public:
  explicit PartitionFile(Fd file) : file_(std::move(file)) {}

  // Appends one image. Throws kResourceExhausted if the disk is full, and the matching error of
  // errno for other failures. Nothing may be written after an error.
  void Append(std::span<const std::byte> image) {
    Write(image);
    EndImage();
  }
  // Appends one image in parts: call Write() for each part, then EndImage().
  void Write(std::span<const std::byte> part);
  void EndImage();
  uint64_t bytes() const { return end_; }
  // Releases preallocated space after the last row.
  void Close();

 private:
  Fd file_;
  uint64_t end_ = 0;
  uint64_t reserved_ = 0;  // preallocated up to here
};

// Splits record batches into images and hashes their rows. One thread uses it.
class ImageMaker {
 public:
  // A function that receives each image; the image is valid until the next one is made.
  using Take = std::function<void(std::span<const std::byte> image)>;

  // Calls `take` with each image of a batch. With `in_place`, large values that are stored in a
  // local file are referenced, not copied (mapped_file.h). Throws kInvalidArgument for an
  // unsupported column type, kResourceExhausted for a row of more than kMaxImageBytes.
  void Make(const ArrowSchema& schema, const ArrowArray& array, bool in_place, const Take& take);

  int64_t rows() const { return rows_; }
  // Hash of all rows so far (row_hash.h).
  uint64_t hash() const { return hash_; }

 private:
  int64_t rows_ = 0;
  uint64_t hash_ = 0;
  std::vector<uint64_t> image_;
};

// Writes one partition's rows to its file, which it owns; the file must be empty and have no other
// writer. One thread uses it.
class PartitionWriter {
 public:
  explicit PartitionWriter(Fd file) : file_(std::move(file)) {}

  // Appends a record batch; returns the total committed so far. Throws the errors of
  // ImageMaker::Make() and PartitionFile::Append().
  Committed Write(const ArrowSchema& schema, const ArrowArray& array);
  uint64_t hash() const { return images_.hash(); }
  void Close() { file_.Close(); }

 private:
  PartitionFile file_;
  ImageMaker images_;
};

}  // namespace hearth::dataset
