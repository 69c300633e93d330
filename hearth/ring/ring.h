// A byte ring in shared memory that carries batches from one process to another: the feeder's to
// the trainer, and results back. One writer, one reader.
#pragma once

#include <cstddef>

#include "hearth/base/fd.h"

namespace hearth::ring {

inline constexpr size_t kDefaultRingBytes = size_t{32} << 20;

// What one side needs. To hand it to a child process, let the child inherit both descriptors; all
// are made close-on-exec.
struct RingEnd {
  Fd memory;
  Fd signal;

  RingEnd Duplicate() const;
};

// Both sides. Whoever made it closes the end that it does not use as soon as the other process has
// it: a side is seen to be dead when the last copy of its signal descriptor is closed.
struct RingEnds {
  RingEnd writer;
  RingEnd reader;
};

RingEnds CreateRing(size_t capacity_bytes = kDefaultRingBytes);

}  // namespace hearth::ring
