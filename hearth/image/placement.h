// Chooses the part of an image that becomes the output, with random crops. All functions are pure.
#pragma once

#include <cstdint>

#include "hearth/image/image_options.h"

namespace hearth::image {

// Maps output pixels to source pixels along one side of an image. Output pixel i covers the source
// pixels [begin + i * step, begin + (i + 1) * step), counted from `low`.
struct AxisPlacement {
  int64_t low = 0, high = 0;  // only source pixels in [low, high) are read
  double begin = 0;           // relative to low
  double step = 1;
};

// The part of an image that becomes the output, by rows and columns.
struct Placement {
  AxisPlacement rows, columns;
  bool mirrored = false;
};

// Random choices depend only on `seed`. height and width must be positive.
Placement Place(const ImageOptions& options, int64_t height, int64_t width, uint64_t seed);

// Converts a placement in an image to that in the image reduced by `factor`. The reduced image has
// `size` pixels along this side.
AxisPlacement Reduce(const AxisPlacement& axis, int64_t factor, int64_t size);

}  // namespace hearth::image
