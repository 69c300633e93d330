// Decodes a JPEG file with libjpeg. Thread-safe.
#pragma once

#include <string_view>

#include "hearth/image/image.h"

namespace hearth::image {

// Decodes, and throws kDataLoss, like DecodeImage. With kUnchanged, grayscale files have one
// channel. A truncated file is an error, not an image that ends in gray.
Image DecodeJpeg(std::string_view bytes, ColorMode mode);

}  // namespace hearth::image
