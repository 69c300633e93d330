#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "hearth/image/image_options.h"
#include "hearth/image/pixel_writer.h"

namespace hearth::image {

// Converts encoded images to pixels for training: decodes, crops, resizes, mirrors, normalizes.
// Immutable and thread-safe; threads reuse their working memory from image to image.
class ImageTransform {
 public:
  // Throws kInvalidArgument for a size below 1 or above 16384, a deviation that is not positive,
  // and a mean or deviation of uint8.
  explicit ImageTransform(const ImageOptions& options);

  const ImageOptions& options() const { return options_; }
  // {3, height, width} or {height, width, 3}.
  std::array<int64_t, 3> shape() const;
  int64_t bytes_per_image() const;

  // Writes bytes_per_image() bytes. Random choices depend only on `seed`. Throws kDataLoss, with
  // the reason, for an image that cannot be decoded; `out` is then unspecified.
  void Apply(std::string_view encoded, uint64_t seed, std::byte* out) const;

  // The same for many images, consecutively in `out`, on up to `threads` threads, including this
  // one. For images that cannot be decoded, writes zeros and sets `failed`.
  void ApplyAll(std::span<const std::string_view> encoded, std::span<const uint64_t> seeds,
                int threads, std::byte* out, std::vector<bool>* failed) const;

 private:
  const ImageOptions options_;
  const PixelWriter writer_;
};

}  // namespace hearth::image
