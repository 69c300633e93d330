// Chooses the part of an image that becomes the output: random crops and their geometry. Pure
// functions.
#pragma once

#include <cstdint>

#include "hearth/image/image_options.h"

namespace hearth::image {

// Maps output pixels to source pixels along one side of an image: output pixel i covers
// [begin + i * step, begin + (i + 1) * step) of the source pixels from `low` on.
struct AxisPlacement {
  int64_t low = 0, high = 0;  // only source pixels of [low, high) are read
  double begin = 0;           // relative to low
  double step = 1;
};

// The part of an image that becomes the output, by rows and columns.
struct Placement {
  AxisPlacement rows, columns;
  bool mirrored = false;
};

// Random choices depend only on `seed`. height and width are positive.
Placement Place(const ImageOptions& options, int64_t height, int64_t width, uint64_t seed);

// The same part of an image that was reduced by `factor`, to `size` pixels along this side.
AxisPlacement Reduce(const AxisPlacement& axis, int64_t factor, int64_t size);

}  // namespace hearth::image
