// Batches in a spill file, in arrival order. Used by spools, and for later epochs of a cluster's
// feed.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <set>
#include <span>
#include <string>

#include "hearth/batch/batch_view.h"
#include "hearth/batch/spill_file.h"

namespace hearth::batch {

// A list of batches in a spill file. One thread appends and truncates; any thread may read. Append
// also throws the errors of SpillFile::Append() and BatchView. Files that contain values stay
// mapped and are checked for changes, so all calls that read them may throw kDataLoss.
class SpilledBatches {
 public:
  // `resident_bytes`: approximate limit of resident mapped bytes; resource managers such as YARN
  // count mapped pages as process memory although the kernel can reclaim them.
  explicit SpilledBatches(std::string directory, uint64_t resident_bytes = uint64_t{256} << 20)
      : file_(std::move(directory)), resident_bytes_(resident_bytes) {}

  // Returns the stored batch, valid until it is truncated.
  const BatchView& Append(std::span<const std::byte> image);
  // Drops all but the first `count` batches; their space in the file is not reused.
  void Truncate(size_t count);

  size_t size() const;
  const BatchView& at(size_t index) const;

  // Call before reading this many bytes. Occasionally drops all mapped pages and calls
  // CheckFiles().
  void CountTouched(uint64_t bytes);
  // Checks all files that contain values. Throws kDataLoss if one of them was modified since its
  // first use.
  void CheckFiles() const;

 private:
  SpillFile file_;
  std::set<std::shared_ptr<const formats::MappedFile>> other_files_;
  const uint64_t resident_bytes_;
  // Upper bound of the bytes made resident since pages were last dropped.
  std::atomic<uint64_t> touched_bytes_ = 0;
  mutable std::mutex mutex_;
  std::deque<BatchView> batches_;  // a deque, so that addresses are stable
};

}  // namespace hearth::batch
