// Bilinear resizing. Thread-safe.
#pragma once

#include "hearth/image/image.h"

namespace hearth::image {

// Pixel centers are at half coordinates and edges are repeated; nothing is smoothed beforehand when
// the image shrinks. Throws kInvalidArgument for an empty image or a size below 1.
Image Resize(const Image& image, int64_t height, int64_t width);

}  // namespace hearth::image
