// Memory of large numpy arrays, kept for the next array when one is freed: fresh memory costs the
// system a page fault for each 4 KB. Thread-safe.
#pragma once

#include <nanobind/nanobind.h>

#include <cstddef>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

namespace hearth::bindings {

class ArrayMemory : public std::enable_shared_from_this<ArrayMemory> {
 public:
  // `bytes` that are not cleared, and the owner for the array; what it frees comes back here, even
  // after the last user of this object but the array has gone. Called with the GIL.
  std::pair<std::byte*, nanobind::capsule> Take(size_t bytes);

 private:
  struct Block {
    std::unique_ptr<std::byte[]> data;
    size_t bytes = 0;
  };
  struct Lent {
    std::shared_ptr<ArrayMemory> home;
    Block block;
  };

  static constexpr size_t kMostKept = 2;

  Block Find(size_t bytes);
  void GiveBack(Block block);

  std::mutex mutex_;
  std::vector<Block> kept_;
};

}  // namespace hearth::bindings
