#include "hearth/batch/spilled_batches.h"

#include <utility>

namespace hearth::batch {

const BatchView& SpilledBatches::Append(std::span<const std::byte> image) {
  // Writes to the file before locking, because readers must not wait for the disk. If the image is
  // invalid, its bytes remain in the file, unused.
  BatchView batch(file_.Append(image));
  CountTouched(image.size());  // BatchView has read the image
  const std::lock_guard lock(mutex_);
  other_files_.insert(batch.files().begin(), batch.files().end());
  return batches_.emplace_back(std::move(batch));
}

void SpilledBatches::Truncate(size_t count) {
  const std::lock_guard lock(mutex_);
  while (batches_.size() > count) batches_.pop_back();
}

size_t SpilledBatches::size() const {
  const std::lock_guard lock(mutex_);
  return batches_.size();
}

const BatchView& SpilledBatches::at(size_t index) const {
  const std::lock_guard lock(mutex_);
  return batches_.at(index);
}

void SpilledBatches::CountTouched(uint64_t bytes) {
  if (touched_bytes_.fetch_add(bytes) + bytes <= resident_bytes_) return;
  // Two threads may reach this point together; dropping the pages twice is harmless.
  touched_bytes_ = 0;
  file_.DropPages();
  // Later reads fetch the dropped pages from the files that contain values, so checks now that
  // those files are unchanged.
  CheckFiles();
  const std::lock_guard lock(mutex_);
  for (const auto& file : other_files_) file->DropPages();
}

void SpilledBatches::CheckFiles() const {
  const std::lock_guard lock(mutex_);
  for (const auto& file : other_files_) file->CheckUnchanged();
}

}  // namespace hearth::batch
