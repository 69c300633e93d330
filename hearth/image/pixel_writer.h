#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "hearth/image/image_options.h"

namespace hearth::image {

// Writes lines of resampled pixels into an output image: type, layout, normalization. Immutable and
// thread-safe.
class PixelWriter {
 public:
  explicit PixelWriter(const ImageOptions& options);

  // `pixels`: options.width of them, red in the lowest byte; `image`: the beginning of the image.
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
