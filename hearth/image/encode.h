// Encodes pixels as JPEG and PNG files. Thread-safe.
#pragma once

#include <string>
#include <string_view>

#include "hearth/image/image.h"

namespace hearth::image {

// Throws kInvalidArgument for an image that the format does not support.
std::string EncodeJpeg(const Image& image, int quality = 95);
std::string EncodePng(const Image& image);

// `type`: "jpg", "jpeg" or "png", in any case, with or without a leading dot. Throws
// kInvalidArgument for another.
std::string EncodeImage(const Image& image, std::string_view type);

}  // namespace hearth::image
