// Memory that all local ranks map: what Group::Allocate gives out. Belongs to one rank; one thread
// uses it.
#pragma once

#include <cstddef>
#include <optional>
#include <vector>

#include "hearth/base/deadline.h"
#include "hearth/base/shared_memory.h"
#include "hearth/collective/local_ranks.h"

namespace hearth::collective {

class Arena {
 public:
  // Where a buffer lies: the same for corresponding buffers of all ranks.
  struct Place {
    size_t block = 0;
    size_t offset = 0;
  };

  explicit Arena(LocalRanks& ranks) : ranks_(ranks) {}

  // All local ranks call it together with the same size. Zeroed, page-aligned; lives as long as the
  // arena.
  std::byte* Allocate(size_t bytes, Deadline deadline);

  // Nothing when the range is not wholly inside one allocation.
  std::optional<Place> Find(const void* data, size_t bytes) const;
  // The corresponding memory of local rank `index`.
  std::byte* At(Place place, int index) const {
    return blocks_[place.block][static_cast<size_t>(index)].data() + place.offset;
  }

 private:
  using Block = std::vector<Mapping>;  // one mapping per local rank

  LocalRanks& ranks_;
  std::vector<Block> blocks_;
};

}  // namespace hearth::collective
