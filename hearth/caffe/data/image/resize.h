// Bilinear resizing. Thread-safe.
#pragma once

#include "hearth/caffe/data/image/image.h"

namespace hearth::caffe {

// Pixel centres lie at half coordinates and edges are repeated; nothing is smoothed beforehand when
// the picture shrinks. Throws kInvalidArgument for an empty picture or a size below 1.
Image Resize(const Image& image, int64_t height, int64_t width);

}  // namespace hearth::caffe
