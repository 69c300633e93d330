#include "array_memory.h"

#include <algorithm>

namespace hearth::bindings {

std::pair<std::byte*, nanobind::capsule> ArrayMemory::Take(size_t bytes) {
  auto lent = std::make_unique<Lent>(Lent{shared_from_this(), Find(bytes)});
  std::byte* data = lent->block.data.get();
  nanobind::capsule owner(lent.get(), [](void* p) noexcept {
    const std::unique_ptr<Lent> back(static_cast<Lent*>(p));
    back->home->GiveBack(std::move(back->block));
  });
  (void)lent.release();  // it is the capsule's now
  return {data, std::move(owner)};
}

// A block that is not much larger than asked for, so that a short last batch does not hold a long
// one.
ArrayMemory::Block ArrayMemory::Find(size_t bytes) {
  {
    const std::lock_guard lock(mutex_);
    const auto fits = [&](const Block& b) { return b.bytes >= bytes && b.bytes / 2 <= bytes; };
    const auto found = std::find_if(kept_.begin(), kept_.end(), fits);
    if (found != kept_.end()) {
      Block block = std::move(*found);
      kept_.erase(found);
      return block;
    }
  }
  return {std::make_unique_for_overwrite<std::byte[]>(bytes), bytes};
}

// The oldest ones go first: they may be of a size that nobody asks for any more.
void ArrayMemory::GiveBack(Block block) {
  const std::lock_guard lock(mutex_);
  if (kept_.size() == kMostKept) kept_.erase(kept_.begin());
  kept_.push_back(std::move(block));
}

}  // namespace hearth::bindings
