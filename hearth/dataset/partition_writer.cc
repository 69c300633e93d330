#include "hearth/dataset/partition_writer.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "hearth/base/error.h"
#include "hearth/feed/arrow_image.h"
#include "hearth/feed/batch_image.h"
#include "hearth/feed/batch_view.h"
#include "hearth/feed/row_hash.h"

namespace hearth::dataset {

void PartitionFile::Append(std::span<const std::byte> image) {
  Require(file_.valid(), ErrorCode::kInvalidArgument,
          "rows were written to a partition's file after it was closed");
  // Pages whose room is taken beforehand are made quicker (spill_file.cc); NFS cannot, and the
  // write itself says when the disk is full.
  constexpr uint64_t kAhead = 8 << 20;
  if (end_ + image.size() > reserved_) {
    reserved_ = end_ + std::max<uint64_t>(image.size(), kAhead);
    (void)::fallocate(file_.get(), FALLOC_FL_KEEP_SIZE, static_cast<off_t>(end_),
                      static_cast<off_t>(reserved_ - end_));
  }
  for (size_t done = 0; done < image.size();) {
    const ssize_t wrote = ::pwrite(file_.get(), image.data() + done, image.size() - done,
                                   static_cast<off_t>(end_ + done));
    if (wrote < 0 && errno == EINTR) continue;
    if (wrote <= 0) {
      ThrowErrno(wrote < 0 ? errno : ENOSPC,
                 fmt::format("cannot write rows to a partition's file, which has {} bytes; free "
                             "disk space or name another folder (spark.local.dir)",
                             end_));
    }
    done += static_cast<size_t>(wrote);
  }
  end_ += feed::AlignImage(image.size());
}

Committed PartitionWriter::Write(const ArrowSchema& schema, const ArrowArray& array) {
  const feed::ArrowImage batch(schema, array);
  for (int64_t row = 0; row < batch.rows();) {
    const int64_t count = batch.RowsWithin(row, kImageBytes);
    const size_t bytes = batch.ImageBytes(row, count);
    Require(bytes <= kMostImageBytes, ErrorCode::kResourceExhausted,
            "row {} of a batch has {} bytes, but a row may have {}; divide it into several rows",
            row, bytes, kMostImageBytes);
    image_.resize(bytes / sizeof(uint64_t));  // images are padded to it
    const std::span<std::byte> image = std::as_writable_bytes(std::span(image_));
    batch.Write(row, count, image);
    hash_ = feed::HashRows(hash_, feed::BatchView(image).columns(), count);
    file_.Append(image);
    rows_ += count;
    row += count;
  }
  return {file_.bytes(), rows_};
}

}  // namespace hearth::dataset
