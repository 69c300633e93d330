#pragma once

#include <nanobind/nanobind.h>

#include <cstddef>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

namespace hearth::bindings {

// Recycles the memory of large NumPy arrays, because fresh memory costs a page fault for every 4
// KB. Thread-safe.
class ArrayMemory : public std::enable_shared_from_this<ArrayMemory> {
 public:
  // Returns `bytes` uninitialised bytes and the owner for the array. When the owner is destroyed,
  // the memory is recycled here; the owner keeps this object alive. Call with the GIL.
  std::pair<std::byte*, nanobind::capsule> Take(size_t bytes);

 private:
  // Memory of one array.
  struct Block {
    std::unique_ptr<std::byte[]> data;
    size_t bytes = 0;
  };
  // A block that an array uses, and the object that recycles it.
  struct TakenBlock {
    std::shared_ptr<ArrayMemory> home;
    Block block;
  };

  static constexpr size_t kMaxBlocks = 2;

  Block Find(size_t bytes);
  void Recycle(Block block);

  std::mutex mutex_;
  std::vector<Block> free_;
};

}  // namespace hearth::bindings
