// Encodes pixels as JPEG and PNG files. Thread-safe.
#pragma once

#include <string>
#include <string_view>

#include "hearth/image/image.h"

namespace hearth::image {

// Both functions throw kInvalidArgument for an image that the format does not support.
std::string EncodeJpeg(const Image& image, int quality = 95);
std::string EncodePng(const Image& image);

// `type` is "jpg", "jpeg" or "png", in upper or lower case, with or without a leading dot. Throws
// kInvalidArgument for another type.
std::string EncodeImage(const Image& image, std::string_view type);

}  // namespace hearth::image
