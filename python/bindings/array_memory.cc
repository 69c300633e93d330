#include "array_memory.h"

#include <algorithm>

namespace hearth::bindings {

std::pair<std::byte*, nanobind::capsule> ArrayMemory::Take(size_t bytes) {
  // The owner references this object, so arrays may outlive the transform that made them.
  auto taken = std::make_unique<TakenBlock>(TakenBlock{shared_from_this(), Find(bytes)});
  std::byte* data = taken->block.data.get();
  nanobind::capsule owner(taken.get(), [](void* p) noexcept {
    const std::unique_ptr<TakenBlock> back(static_cast<TakenBlock*>(p));
    back->home->Recycle(std::move(back->block));
  });
  (void)taken.release();  // owned by the capsule now
  return {data, std::move(owner)};
}

// Reuses only blocks of similar size, so that a short last batch does not occupy a large block.
ArrayMemory::Block ArrayMemory::Find(size_t bytes) {
  {
    const std::lock_guard lock(mutex_);
    const auto fits = [&](const Block& b) { return b.bytes >= bytes && b.bytes / 2 <= bytes; };
    const auto found = std::find_if(free_.begin(), free_.end(), fits);
    if (found != free_.end()) {
      Block block = std::move(*found);
      free_.erase(found);
      return block;
    }
  }
  return {std::make_unique_for_overwrite<std::byte[]>(bytes), bytes};
}

// If too many blocks are free, releases the oldest one, because its size may no longer be
// requested.
void ArrayMemory::Recycle(Block block) {
  const std::lock_guard lock(mutex_);
  if (free_.size() == kMaxBlocks) free_.erase(free_.begin());
  free_.push_back(std::move(block));
}

}  // namespace hearth::bindings
