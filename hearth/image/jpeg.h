// One JPEG file by libjpeg. Thread-safe.
#pragma once

#include <string_view>

#include "hearth/image/image.h"

namespace hearth::image {

// Greyscale files stay one channel with kUnchanged. Throws kDataLoss as DecodeImage does; a file
// that ends early is an error, not an image with a grey rest.
Image DecodeJpeg(std::string_view bytes, ColorMode mode);

}  // namespace hearth::image
