// Decodes a JPEG file by libjpeg. Thread-safe.
#pragma once

#include <string_view>

#include "hearth/image/image.h"

namespace hearth::image {

// Grayscale files stay one channel with kUnchanged. Throws kDataLoss like DecodeImage; a truncated
// file is an error, not an image whose rest is gray.
Image DecodeJpeg(std::string_view bytes, ColorMode mode);

}  // namespace hearth::image
