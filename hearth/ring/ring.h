// Byte ring in shared memory that transfers batches between two processes: rows from the feeder to
// the trainer, and results back. One writer, one reader.
#pragma once

#include <cstddef>

#include "hearth/base/fd.h"

namespace hearth::ring {

inline constexpr size_t kDefaultRingBytes = size_t{32} << 20;

// Descriptors of one side, created close-on-exec. Clear this flag for the side that a child process
// is to inherit.
struct RingEnd {
  Fd memory;
  Fd signal;
};

// Both sides of a ring. A side counts as dead when the last copy of its signal descriptor is
// closed. Therefore the creator must close its copy of the other process's side once that process
// has it.
struct RingEnds {
  RingEnd writer;
  RingEnd reader;
};

RingEnds CreateRing(size_t capacity_bytes = kDefaultRingBytes);

}  // namespace hearth::ring
