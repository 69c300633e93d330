#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "hearth/image/image_options.h"

namespace hearth::image {

// Writes lines of resampled pixels to an output image with the type, layout and normalization of
// the options. Immutable and thread-safe.
class PixelWriter {
 public:
  explicit PixelWriter(const ImageOptions& options);

  // Writes line `y` of the output image that starts at `image`. `pixels` must have options.width
  // pixels, with red in the lowest byte.
  void WriteLine(const uint32_t* pixels, int64_t y, std::byte* image) const;

 private:
  template <typename T>
  void Write(const uint32_t* pixels, int64_t y, T* image) const;

  const int64_t height_, width_;
  const PixelType type_;
  const PixelLayout layout_;
  std::array<float, 3> scale_, offset_;
};

}  // namespace hearth::image
