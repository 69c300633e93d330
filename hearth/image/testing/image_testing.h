// Test helpers: images.
#pragma once

#include <string>

#include "hearth/image/encode.h"
#include "hearth/image/image.h"

namespace hearth::image {

// An image in which every pixel and channel differs from its neighbours, but smoothly enough for
// JPEG.
inline Image GradientImage(int64_t height, int64_t width, int64_t channels) {
  Image image{height, width, channels, {}};
  for (int64_t y = 0; y < height; ++y) {
    for (int64_t x = 0; x < width; ++x) {
      for (int64_t c = 0; c < channels; ++c) {
        image.pixels.push_back(static_cast<uint8_t>(20 + 7 * y + 3 * x + 40 * c));
      }
    }
  }
  return image;
}

}  // namespace hearth::image
