// Batches in a spill file, in the order in which they came: what a spool keeps of a ring, and what
// later epochs of a cluster's feed read.
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

// One thread appends and takes back; any may read. Append throws as SpillFile::Append() and
// BatchView do. Where values lie in other files, these are kept mapped, and noticed when they are
// written: all calls that read them may throw kDataLoss.
class KeptBatches {
 public:
  // `resident_bytes`: about how many bytes of the file may be mapped pages, which resource managers
  // such as YARN count as memory of the process although the system can take them back.
  explicit KeptBatches(std::string directory, uint64_t resident_bytes = uint64_t{256} << 20)
      : file_(std::move(directory)), resident_bytes_(resident_bytes) {}

  // The batch where it lies, valid until it is taken back.
  const BatchView& Append(std::span<const std::byte> image);
  // Forgets all but the first `count`; the others' space in the file is not reused.
  void TakeBack(size_t count);

  size_t size() const;
  const BatchView& at(size_t index) const;

  // Announces that so many bytes are about to be read; now and then all mapped pages are dropped,
  // and the other files are looked at.
  void CountTouched(uint64_t bytes);
  // Throws kDataLoss where a file with values was written since the first of them came.
  void CheckFiles() const;

 private:
  SpillFile file_;
  std::set<std::shared_ptr<const formats::MappedFile>> other_files_;
  const uint64_t resident_bytes_;
  // Bytes that may have become resident since pages were last dropped.
  std::atomic<uint64_t> touched_bytes_ = 0;
  mutable std::mutex mutex_;
  std::deque<BatchView> batches_;  // addresses stay
};

}  // namespace hearth::batch
