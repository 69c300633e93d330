// Rows of one attempt to write a partition: its file, mapped read-only, and views of its images
// (docs/format_batch.md). New views are added as the writer commits more.
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

// The rows of one file. Views and mappings stay valid until this object is destroyed. If the writer
// truncates the file, reading it raises SIGBUS.
class PartitionRows {
 public:
  // A row: its batch, and its index in that batch.
  struct RowRef {
    const batch::BatchView* batch;
    int64_t row;
  };

  // Takes ownership of the file. `partition` and `attempt` identify the writer, for example in
  // error messages.
  PartitionRows(int64_t partition, int64_t attempt, Fd file)
      : partition_(partition), attempt_(attempt), file_(std::move(file)) {}

  int64_t attempt() const { return attempt_; }

  // Returns views of the images that are new in `committed`. Throws kDataLoss, naming the
  // partition, if the file is too short, an image is damaged, the number of rows differs, or
  // `committed` decreased. Not thread-safe.
  std::vector<batch::BatchView> ReadTo(const Committed& committed);

  // Adds the views returned by ReadTo(). Calls of this function and of those below must be
  // serialised.
  void Add(std::vector<batch::BatchView> batches);
  int64_t rows() const { return rows_; }
  // Returns the row with this index, which must be in [0, rows()).
  RowRef At(int64_t row) const;
  // Approximate number of bytes per row of this batch.
  static uint64_t RowBytes(const batch::BatchView& batch);
  const std::deque<batch::BatchView>& batches() const { return batches_; }
  // Returns the rolling hash (row_hash.h) of the first `rows` rows, which this call reads.
  uint64_t HashOf(int64_t rows) const;

  // The functions below are thread-safe.
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
  Committed read_;  // end of the data that was read by ReadTo()
  mutable std::mutex mutex_;
  std::vector<Mapping> mappings_;
  uint64_t mapping_begin_ = 0, mapping_end_ = 0;  // range of the last mapping in the file
  // Published batches, all of which have rows.
  std::deque<batch::BatchView> batches_;
  std::vector<int64_t> first_rows_;
  std::vector<uint32_t> strides_;  // batch of every kStride-th row
  int64_t rows_ = 0;
};

// Returns the hash of all rows of a complete file; throws the errors of ReadTo().
uint64_t HashOfFile(int64_t partition, Fd file, const Committed& committed);

}  // namespace hearth::dataset
