// Decodes JPEG and PNG files to pixels. Thread-safe.
#pragma once

#include <string_view>

#include "hearth/image/image.h"
#include "hearth/image/image_options.h"

namespace hearth::image {

// Returns kJpeg or kPng, by the first bytes. Throws kDataLoss for others.
ImageKind KindOf(std::string_view bytes);

// Detects the format by the first bytes. Throws kDataLoss, with the reason, for bytes that are not
// such an image, damaged, truncated, or larger than kMaxImagePixels.
Image DecodeImage(std::string_view bytes, ColorMode mode);

}  // namespace hearth::image
