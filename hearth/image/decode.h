// Decodes JPEG and PNG files to pixels. Thread-safe.
#pragma once

#include <string_view>

#include "hearth/image/image.h"
#include "hearth/image/image_options.h"

namespace hearth::image {

// Returns kJpeg or kPng, according to the first bytes. Throws kDataLoss for other bytes.
ImageKind KindOf(std::string_view bytes);

// Decodes a JPEG or PNG file, which it recognizes by the first bytes. Throws kDataLoss, with the
// reason, if the bytes are not such a file, or if the image is damaged, truncated, or larger than
// kMaxImagePixels.
Image DecodeImage(std::string_view bytes, ColorMode mode);

}  // namespace hearth::image
