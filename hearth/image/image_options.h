#pragma once

#include <array>
#include <cstdint>
#include <optional>

namespace hearth::image {

enum class ImageKind { kJpeg, kPng, kAny };  // kAny: detected by the first bytes

enum class CropMode {
  kNone,    // the whole image, stretched to the size
  kRandom,  // like torchvision's RandomResizedCrop: 8 to 100 % of the area, sides 3:4 to 4:3
  kCenter,  // the short side resized to size * 256 / 224, then the center
};

enum class PixelType { kUint8, kFloat32, kBfloat16 };
enum class PixelLayout { kNchw, kNhwc };

// Options of ImageTransform.
struct ImageOptions {
  ImageKind kind = ImageKind::kJpeg;
  CropMode crop = CropMode::kRandom;
  int64_t height = 224, width = 224;
  bool flip = true;  // mirrors every second image, at random
  // Of red, green and blue in [0, 1]: out = (pixel / 255 - mean) / std. Not with kUint8.
  std::optional<std::array<float, 3>> mean, std;
  PixelType type = PixelType::kUint8;
  PixelLayout layout = PixelLayout::kNchw;
  // Lets libjpeg decode at 1/2, 1/4 or 1/8 of the size if the crop is that much larger than the
  // output. Faster; docs/images.md has the error.
  bool scaled_decoding = true;
};

}  // namespace hearth::image
