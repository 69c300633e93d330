// A batch of rows as its readers see it: named columns over a batch image (docs/format_batch.md)
// in memory that somebody else owns: the ring, a mapped spill file or a block on the heap.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "hearth/batch/column_view.h"
#include "hearth/formats/mapped_file.h"

namespace hearth::batch {

// Immutable after construction; reading is thread-safe.
class BatchView {
 public:
  // Checks every bound of the image, so that no later read can leave it; throws kDataLoss for a
  // damaged one. The image starts at a multiple of 8 bytes and must outlive the view. A file in
  // which values lie is mapped, and the view keeps it: throws as MappedFile::Find() and
  // CheckUnchanged().
  explicit BatchView(std::span<const std::byte> image);

  std::span<const std::byte> image() const { return image_; }
  int64_t rows() const { return rows_; }
  const std::vector<ColumnView>& columns() const { return columns_; }

  // The column of that name; throws kNotFound, listing the names that exist.
  const ColumnView& column(std::string_view name) const;
  // Null where there is no such column.
  const ColumnView* FindColumn(std::string_view name) const;

  // The files in which values lie, and how many bytes of them these are.
  const std::vector<std::shared_ptr<const formats::MappedFile>>& files() const { return files_; }
  uint64_t file_bytes() const { return file_bytes_; }

 private:
  std::span<const std::byte> image_;
  int64_t rows_ = 0;
  std::vector<std::shared_ptr<const formats::MappedFile>> files_;
  uint64_t file_bytes_ = 0;
  std::vector<ColumnView> columns_;
};

// A view that owns a heap copy of its image.
std::shared_ptr<const BatchView> CopyBatch(std::span<const std::byte> image);

}  // namespace hearth::batch
