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

// Converts encoded images to pixels for training: decodes, crops, resizes, mirrors and normalizes
// them. Immutable and thread-safe. Each thread reuses its working memory for all images.
class ImageTransform {
 public:
  // Throws kInvalidArgument if a size is below 1 or above 16384, if a deviation is not positive, or
  // if a mean or deviation is set for uint8.
  explicit ImageTransform(const ImageOptions& options);

  const ImageOptions& options() const { return options_; }
  // {3, height, width} or {height, width, 3}, depending on the layout.
  std::array<int64_t, 3> shape() const;
  int64_t bytes_per_image() const;

  // Writes bytes_per_image() bytes to `out`. Random choices depend only on `seed`. Throws
  // kDataLoss, with the reason, if the image cannot be decoded; the content of `out` is then
  // unspecified.
  void Apply(std::string_view encoded, uint64_t seed, std::byte* out) const;

  // Transforms many images and writes them consecutively to `out`, on up to `threads` threads
  // including the calling one. For an image that cannot be decoded, writes zeros and sets its
  // element of `failed`.
  void ApplyAll(std::span<const std::string_view> encoded, std::span<const uint64_t> seeds,
                int threads, std::byte* out, std::vector<bool>* failed) const;

 private:
  const ImageOptions options_;
  const PixelWriter writer_;
};

}  // namespace hearth::image
