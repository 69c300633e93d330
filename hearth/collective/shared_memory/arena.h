#pragma once

#include <cstddef>
#include <optional>
#include <vector>

#include "hearth/base/deadline.h"
#include "hearth/base/shared_memory.h"
#include "hearth/collective/shared_memory/local_ranks.h"

namespace hearth::collective {

// Memory that all local ranks map, returned by Group::Allocate. Belongs to one rank and is used by
// one thread.
class Arena {
 public:
  // Location of a buffer in the arena; the same for the corresponding buffers of all ranks.
  struct Location {
    size_t block = 0;
    size_t offset = 0;
  };

  explicit Arena(LocalRanks& ranks) : ranks_(ranks) {}

  // Collective over all local ranks, with the same size. The memory is zeroed and page-aligned, and
  // is freed with the arena. Throws as LocalRanks::Synchronize does, and kUnavailable if a peer's
  // memory cannot be opened.
  std::byte* Allocate(size_t bytes, Deadline deadline);

  // Location of a range, or empty unless the whole range is inside one allocation.
  std::optional<Location> Find(const void* data, size_t bytes) const;
  // The corresponding memory of local rank `index`.
  std::byte* At(Location location, int index) const {
    return blocks_[location.block][static_cast<size_t>(index)].data() + location.offset;
  }

 private:
  using Block = std::vector<Mapping>;  // one mapping per local rank

  LocalRanks& ranks_;
  std::vector<Block> blocks_;
};

}  // namespace hearth::collective
