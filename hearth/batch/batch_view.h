// A batch of rows for readers: named columns over a batch image (docs/format_batch.md). The image's
// memory belongs to a ring, a mapped spill file or a heap block.
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

// A validated batch image. Immutable after construction; reading is thread-safe.
class BatchView {
 public:
  // Validates every bound of the image, so that later reads stay inside it; throws kDataLoss for a
  // damaged image. The image must be 8-byte aligned and outlive the view. Maps the files that
  // contain values and keeps them mapped; also throws the errors of MappedFile::Find() and
  // CheckUnchanged().
  explicit BatchView(std::span<const std::byte> image);

  std::span<const std::byte> image() const { return image_; }
  int64_t rows() const { return rows_; }
  const std::vector<ColumnView>& columns() const { return columns_; }

  // The column with this name; throws kNotFound, listing the names that exist.
  const ColumnView& column(std::string_view name) const;
  // Null if there is no such column.
  const ColumnView* FindColumn(std::string_view name) const;

  // Files that contain values, and the total size of those values.
  const std::vector<std::shared_ptr<const formats::MappedFile>>& files() const { return files_; }
  uint64_t file_bytes() const { return file_bytes_; }

 private:
  std::span<const std::byte> image_;
  int64_t rows_ = 0;
  std::vector<std::shared_ptr<const formats::MappedFile>> files_;
  uint64_t file_bytes_ = 0;
  std::vector<ColumnView> columns_;
};

// Returns a view that owns a heap copy of the image.
std::shared_ptr<const BatchView> CopyBatch(std::span<const std::byte> image);

}  // namespace hearth::batch
