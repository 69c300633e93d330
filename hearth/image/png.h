// Decodes a PNG file by libpng. Thread-safe.
#pragma once

#include <string_view>

#include "hearth/image/image.h"

namespace hearth::image {

// 16-bit samples keep their upper byte; palettes are expanded; transparency is dropped unless the
// mode is kUnchanged. Throws kDataLoss as DecodeImage does.
Image DecodePng(std::string_view bytes, ColorMode mode);
// The same into reused memory, optionally as red-green-blue.
void DecodePng(std::string_view bytes, ColorMode mode, bool red_first, Image* image);

}  // namespace hearth::image
