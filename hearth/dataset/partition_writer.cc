#include "hearth/dataset/partition_writer.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <numeric>
#include <utility>

#include "hearth/base/error.h"
#include "hearth/batch/arrow_image.h"
#include "hearth/batch/batch_image.h"
#include "hearth/batch/batch_view.h"
#include "hearth/batch/row_hash.h"
#include "hearth/dataset/copy_rows.h"

namespace hearth::dataset {

void PartitionFile::Write(std::span<const std::byte> part) {
  Require(file_.valid(), ErrorCode::kInvalidArgument,
          "cannot write rows to a closed partition file");
  // Writing to preallocated blocks is faster (spill_file.cc). Ignores errors: NFS cannot
  // preallocate, and a full disk is reported by the write.
  constexpr uint64_t kMaxAhead = 8 << 20;
  if (end_ + part.size() > reserved_) {
    // Preallocation at most doubles the file, because a dataset may have thousands of small files.
    reserved_ = end_ + std::max<uint64_t>(part.size(), std::min(end_, kMaxAhead));
    // KEEP_SIZE, because readers compare the file's size with the committed bytes.
    (void)::fallocate(file_.get(), FALLOC_FL_KEEP_SIZE, static_cast<off_t>(end_),
                      static_cast<off_t>(reserved_ - end_));
  }
  for (size_t done = 0; done < part.size();) {
    const ssize_t wrote = ::pwrite(file_.get(), part.data() + done, part.size() - done,
                                   static_cast<off_t>(end_ + done));
    if (wrote < 0 && errno == EINTR) continue;
    if (wrote <= 0) {
      ThrowErrno(wrote < 0 ? errno : ENOSPC,
                 fmt::format("cannot append rows to a partition file of {} bytes; free "
                             "disk space or set another folder (spark.local.dir)",
                             end_));
    }
    done += static_cast<size_t>(wrote);
  }
  end_ += part.size();
}

void PartitionFile::Close() {
  if (!file_.valid()) return;
  if (reserved_ > end_) (void)::ftruncate(file_.get(), static_cast<off_t>(end_));
  file_.Reset();
}

void PartitionFile::EndImage() { end_ = batch::AlignImage(end_); }

void ImageMaker::Make(const ArrowSchema& schema, const ArrowArray& array, bool in_place,
                      const Take& take) {
  const batch::ArrowImage batch(schema, array);
  for (int64_t row = 0; row < batch.rows();) {
    const int64_t count = batch.RowsWithin(row, kImageBytes);
    const size_t bytes = batch.ImageBytes(row, count);
    Require(bytes <= kMaxImageBytes, ErrorCode::kResourceExhausted,
            "row {} of a batch has {} bytes, the limit is {}; split it into several rows", row,
            bytes, kMaxImageBytes);
    image_.resize(bytes / sizeof(uint64_t));  // image sizes are multiples of 8
    const std::span<std::byte> image = std::as_writable_bytes(std::span(image_));
    batch.Write(row, count, image);
    // Hashes the image as readers see it, so that both get the same hash for every column type.
    const batch::BatchView view(image);
    hash_ = batch::HashRows(hash_, view.columns(), count);
    if (in_place || view.files().empty()) {
      take(image);
    } else {
      std::vector<size_t> columns(view.columns().size());
      std::iota(columns.begin(), columns.end(), size_t{0});
      take(CopyRuns({{&view, 0, count}}, columns)->image());
    }
    rows_ += count;
    row += count;
  }
}

Committed PartitionWriter::Write(const ArrowSchema& schema, const ArrowArray& array) {
  images_.Make(schema, array, true,
               [this](std::span<const std::byte> image) { file_.Append(image); });
  return {file_.bytes(), images_.rows()};
}

}  // namespace hearth::dataset
