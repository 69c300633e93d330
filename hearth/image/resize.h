// Bilinear resizing. Thread-safe.
#pragma once

#include "hearth/image/image.h"

namespace hearth::image {

// Pixel centers are at half coordinates, and edge pixels are repeated. An image that shrinks is not
// smoothed. Throws kInvalidArgument for an empty image or an invalid size.
Image Resize(const Image& image, int64_t height, int64_t width);

}  // namespace hearth::image
