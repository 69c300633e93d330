#pragma once

#include <array>
#include <cstdint>
#include <optional>

namespace hearth::image {

enum class ImageKind { kJpeg, kPng, kAny };  // kAny: recognized by the first bytes

enum class CropMode {
  kNone,    // the whole image, stretched to the output size
  kRandom,  // like torchvision's RandomResizedCrop: 8 to 100 % of the area, aspect ratio 3:4 to 4:3
  kCenter,  // resizes the short side to size * 256 / 224, then crops the center
};

enum class PixelType { kUint8, kFloat32, kBfloat16 };
enum class PixelLayout { kNchw, kNhwc };

// Options of ImageTransform.
struct ImageOptions {
  ImageKind kind = ImageKind::kJpeg;
  CropMode crop = CropMode::kRandom;
  int64_t height = 224, width = 224;
  bool flip = true;  // mirrors images at random, with probability 1/2
  // Mean and deviation of red, green and blue, for values in [0, 1]: out = (pixel / 255 - mean) /
  // std. Not allowed with kUint8.
  std::optional<std::array<float, 3>> mean, std;
  PixelType type = PixelType::kUint8;
  PixelLayout layout = PixelLayout::kNchw;
  // If the crop is large enough, libjpeg decodes at 1/2, 1/4 or 1/8 of the size. This is faster;
  // docs/images.md describes the error.
  bool scaled_decoding = true;
};

}  // namespace hearth::image
