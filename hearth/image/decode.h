// JPEG and PNG bytes to pixels. Thread-safe.
#pragma once

#include <string_view>

#include "hearth/image/image.h"
#include "hearth/image/image_options.h"

namespace hearth::image {

// kJpeg or kPng, by the first bytes. Throws kDataLoss for others.
ImageKind KindOf(std::string_view bytes);

// Finds the format by its first bytes. Throws kDataLoss, saying what is wrong, for bytes that are
// no such image, damaged, cut short, or larger than kMaxImagePixels.
Image DecodeImage(std::string_view bytes, ColorMode mode);

}  // namespace hearth::image
