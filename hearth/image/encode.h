// Pixels to the bytes of JPEG and PNG files. Thread-safe.
#pragma once

#include <string>
#include <string_view>

#include "hearth/image/image.h"

namespace hearth::image {

// Throws kInvalidArgument for an image that the format cannot hold.
std::string EncodeJpeg(const Image& image, int quality = 95);
std::string EncodePng(const Image& image);

// `type`: "jpg", "jpeg" or "png", in any case, a dot before it or not. Throws kInvalidArgument for
// another.
std::string EncodeImage(const Image& image, std::string_view type);

}  // namespace hearth::image
