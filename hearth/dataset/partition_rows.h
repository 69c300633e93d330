// The rows of one attempt to write a partition: its file, mapped read-only, and the views of its
// images (docs/format_batch.md), which grow as the writer commits more.
#pragma once

#include <fmt/format.h>

#include <cstddef>
#include <cstdint>
#include <deque>
#include <mutex>
#include <span>
#include <utility>
#include <vector>

#include "hearth/base/fd.h"
#include "hearth/base/shared_memory.h"
#include "hearth/batch/batch_view.h"
#include "hearth/dataset/partition_writer.h"

namespace hearth::dataset {

// Views and mappings stay where they are until this is destroyed. A file that its writer cuts while
// it is mapped is a SIGBUS.
class PartitionRows {
 public:
  struct Place {
    const batch::BatchView* batch;
    int64_t row;
  };

  // Owns the file. The numbers are for messages.
  PartitionRows(int64_t partition, int64_t attempt, Fd file)
      : partition_(partition), attempt_(attempt), file_(std::move(file)) {}

  int64_t attempt() const { return attempt_; }

  // Views of the images that are new in `committed`. Throws kDataLoss, naming the partition, where
  // the file is shorter, an image is damaged or has another number of rows, or less is committed
  // than before. Not thread-safe.
  std::vector<batch::BatchView> ReadTo(const Committed& committed);

  // Makes them visible. The calls below are not thread-safe among each other.
  void Add(std::vector<batch::BatchView> batches);
  int64_t rows() const { return rows_; }
  // 0 <= row < rows().
  Place PlaceOf(int64_t row) const;
  // About how many bytes a row of the batch has.
  static uint64_t RowBytes(const batch::BatchView& batch);
  const std::deque<batch::BatchView>& batches() const { return batches_; }
  // The rolling hash of the first rows (row_hash.h); reads them.
  uint64_t HashOf(int64_t rows) const;

  // These are thread-safe.
  uint64_t mapped_bytes() const;
  void DropPages() const;

 private:
  static constexpr int64_t kStride = 256;

  std::span<const std::byte> ImageAt(uint64_t offset, uint64_t limit);
  void MapTo(uint64_t begin, uint64_t limit);
  template <typename... Args>
  void RequireSound(bool sound, fmt::format_string<Args...> format, Args&&... args) const;

  const int64_t partition_, attempt_;
  const Fd file_;
  Committed read_;  // up to here there are views
  mutable std::mutex mutex_;
  std::vector<Mapping> mappings_;
  uint64_t mapping_begin_ = 0, mapping_end_ = 0;  // of the last one, in the file
  // Visible: all batches have rows.
  std::deque<batch::BatchView> batches_;
  std::vector<int64_t> first_rows_;
  std::vector<uint32_t> strides_;  // the batch of every kStride-th row
  int64_t rows_ = 0;
};

// The hash of all rows of a complete file; throws as ReadTo().
uint64_t HashOfFile(int64_t partition, Fd file, const Committed& committed);

}  // namespace hearth::dataset
