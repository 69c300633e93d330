#include "hearth/dataset/partition_rows.h"

#include <sys/mman.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "hearth/base/error.h"
#include "hearth/batch/batch_image.h"
#include "hearth/batch/row_hash.h"

namespace hearth::dataset {
namespace {

using batch::BatchView;

// Each mapping is as large as all previous ones together, within these bounds. This needs few
// mappings and little address space.
constexpr uint64_t kSmallestMapping = uint64_t{1} << 20;
constexpr uint64_t kLargestMapping = uint64_t{64} << 20;

uint64_t SizeOf(const Fd& file) {
  struct stat status = {};
  if (::fstat(file.get(), &status) != 0) {
    ThrowErrno(errno, "cannot read the size of a partition's file");
  }
  return static_cast<uint64_t>(status.st_size);
}

}  // namespace

template <typename... Args>
void PartitionRows::RequireSound(bool sound, fmt::format_string<Args...> format,
                                 Args&&... args) const {
  if (sound) return;
  Throw(ErrorCode::kDataLoss,
        "the file of partition {} (attempt {}) is damaged: {}; the process that wrote it is faulty "
        "or runs another version of Hearth",
        partition_, attempt_, fmt::format(format, std::forward<Args>(args)...));
}

// If an image is invalid, `read_` is unchanged and no view is published; the caller drops the
// attempt.
std::vector<BatchView> PartitionRows::ReadTo(const Committed& committed) {
  RequireSound(committed.bytes >= read_.bytes && committed.rows >= read_.rows,
               "{} bytes and {} rows were committed after {} bytes and {} rows", committed.bytes,
               committed.rows, read_.bytes, read_.rows);
  std::vector<BatchView> batches;
  if (committed.bytes > read_.bytes) {
    const uint64_t size = SizeOf(file_);
    RequireSound(size >= committed.bytes, "{} bytes were committed, but it has {}", committed.bytes,
                 size);
  }
  int64_t rows = read_.rows;
  for (uint64_t at = read_.bytes; at < committed.bytes;) {
    const std::span<const std::byte> image = ImageAt(at, committed.bytes);
    try {
      batches.emplace_back(image);
    } catch (const Error& error) {
      if (error.code() != ErrorCode::kDataLoss) throw;
      throw Error(error.code(),
                  fmt::format("the file of partition {} (attempt {}), at byte {}", partition_,
                              attempt_, at),
                  error);
    }
    rows += batches.back().rows();
    at += batch::AlignImage(image.size());
  }
  RequireSound(rows == committed.rows, "{} rows were committed, but it has {}", committed.rows,
               rows);
  // A batch without rows would have no entry in the index below, and RowBytes() divides by rows.
  std::erase_if(batches, [](const BatchView& batch) { return batch.rows() == 0; });
  read_ = committed;
  return batches;
}

// Returns the bytes of the image at `offset`. Checks only that the image ends before `limit`.
std::span<const std::byte> PartitionRows::ImageAt(uint64_t offset, uint64_t limit) {
  batch::ImageHeader header;
  RequireSound(limit - offset >= sizeof(header), "it ends within an image at byte {}", offset);
  if (offset + sizeof(header) > mapping_end_) MapTo(offset, limit);
  const auto at = [this](uint64_t position) {
    return mappings_.back().data() + (position - mapping_begin_);
  };
  std::memcpy(&header, at(offset), sizeof(header));
  RequireSound(header.bytes >= sizeof(header) && header.bytes <= limit - offset,
               "the header of the image at byte {} has {} bytes, but {} are left", offset,
               header.bytes, limit - offset);
  // If an image crosses the end of the mapping, maps it again as a whole, at the start of the next
  // mapping.
  if (offset + header.bytes > mapping_end_) MapTo(offset, limit);
  return {at(offset), header.bytes};
}

// Maps the file from `begin`, a multiple of 64.
void PartitionRows::MapTo(uint64_t begin, uint64_t limit) {
  const uint64_t page = RoundUpToPages(1);
  const uint64_t from = begin / page * page;
  const uint64_t ahead = std::clamp(mapping_end_, kSmallestMapping, kLargestMapping);
  // The mapping may extend beyond the end of the file; its pages there are accessed only once they
  // are committed.
  const uint64_t end = from + RoundUpToPages(std::max(limit - from, ahead));
  const std::lock_guard lock(mutex_);
  mappings_.push_back(Mapping::OfGrowingFile(file_.get(), from, end - from));
  mapping_begin_ = from;
  mapping_end_ = end;
}

void PartitionRows::Add(std::vector<BatchView> batches) {
  for (BatchView& batch : batches) {
    first_rows_.push_back(rows_);
    rows_ += batch.rows();
    batches_.push_back(std::move(batch));
    const auto number = static_cast<uint32_t>(batches_.size() - 1);
    while (static_cast<int64_t>(strides_.size()) * kStride < rows_) strides_.push_back(number);
  }
}

PartitionRows::RowRef PartitionRows::At(int64_t row) const {
  // Takes one lookup and a few steps. For random rows, each step of a binary search would miss the
  // cache.
  size_t batch = strides_[static_cast<size_t>(row / kStride)];
  while (batch + 1 < first_rows_.size() && first_rows_[batch + 1] <= row) ++batch;
  return {&batches_[batch], row - first_rows_[batch]};
}

uint64_t PartitionRows::RowBytes(const BatchView& batch) {
  return (batch.image().size() + batch.file_bytes()) / static_cast<uint64_t>(batch.rows());
}

uint64_t PartitionRows::HashOf(int64_t rows) const {
  uint64_t hash = 0;
  for (const BatchView& batch : batches_) {
    if (rows <= 0) break;
    hash = batch::HashRows(hash, batch.columns(), std::min(rows, batch.rows()));
    rows -= batch.rows();
  }
  return hash;
}

uint64_t PartitionRows::mapped_bytes() const {
  const std::lock_guard lock(mutex_);
  uint64_t bytes = 0;
  for (const Mapping& mapping : mappings_) bytes += mapping.size();
  return bytes;
}

void PartitionRows::DropPages() const {
  const std::lock_guard lock(mutex_);
  // Only a hint; cannot fail for file mappings.
  for (const Mapping& mapping : mappings_) {
    (void)::madvise(mapping.data(), mapping.size(), MADV_DONTNEED);
  }
}

uint64_t HashOfFile(int64_t partition, Fd file, const Committed& committed) {
  PartitionRows rows(partition, 0, std::move(file));
  rows.Add(rows.ReadTo(committed));
  return rows.HashOf(committed.rows);
}

}  // namespace hearth::dataset
