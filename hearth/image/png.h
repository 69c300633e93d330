// Decodes a PNG file with libpng. Thread-safe.
#pragma once

#include <string_view>

#include "hearth/image/image.h"

namespace hearth::image {

// Reduces 16-bit samples to their upper byte, expands palettes, and drops transparency unless the
// mode is kUnchanged. Throws kDataLoss like DecodeImage.
Image DecodePng(std::string_view bytes, ColorMode mode);
// Decodes to `image`, whose memory is reused. With `red_first`, the order is red-green-blue.
void DecodePng(std::string_view bytes, ColorMode mode, bool red_first, Image* image);

}  // namespace hearth::image
