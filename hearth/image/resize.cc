#include "hearth/image/resize.h"

#include <algorithm>
#include <cmath>

#include "hearth/base/error.h"

namespace hearth::image {
namespace {

// Weights are 11-bit fixed-point numbers, as in OpenCV, with which published networks were trained.
// Float weights would occasionally differ by one gray level.
constexpr int kWeightBits = 11;
constexpr int kWeightOne = 1 << kWeightBits;

// The source pixels `first` and `second` between which an output pixel is interpolated.
struct Tap {
  int64_t first, second;
  int first_weight, second_weight;
};

std::vector<Tap> MakeTaps(int64_t from, int64_t to) {
  const double scale = static_cast<double>(from) / static_cast<double>(to);
  std::vector<Tap> taps(to);
  for (int64_t i = 0; i < to; ++i) {
    const float position = static_cast<float>((i + 0.5) * scale - 0.5);
    int64_t first = static_cast<int64_t>(std::floor(position));
    float fraction = position - first;
    // Beyond the center of the first or last pixel, the edge pixel is repeated.
    if (first < 0 || first >= from - 1) {
      first = std::clamp<int64_t>(first, 0, from - 1);
      fraction = 0;
    }
    taps[i] = {first, std::min(first + 1, from - 1),
               static_cast<int>(std::lrint((1.f - fraction) * kWeightOne)),
               static_cast<int>(std::lrint(fraction * kWeightOne))};
  }
  return taps;
}

// Resizes one source row horizontally. The results have 8 + 11 bits.
void ResizeRow(const uint8_t* row, const std::vector<Tap>& taps, int64_t channels, int* out) {
  for (const Tap& tap : taps) {
    const uint8_t* first = row + tap.first * channels;
    const uint8_t* second = row + tap.second * channels;
    for (int64_t c = 0; c < channels; ++c) {
      *out++ = first[c] * tap.first_weight + second[c] * tap.second_weight;
    }
  }
}

// The shifts keep each product within 32 bits and round the sum to the nearest gray level.
uint8_t Blend(int upper, int upper_weight, int lower, int lower_weight) {
  // Rows have 8 + 11 bits and weights 11. Dropping 4 bits before the product and 16 after it leaves
  // 8 + 2 bits.
  const int sum = ((upper_weight * (upper >> 4)) >> 16) + ((lower_weight * (lower >> 4)) >> 16);
  return static_cast<uint8_t>((sum + 2) >> 2);
}

}  // namespace

Image Resize(const Image& image, int64_t height, int64_t width) {
  Require(image.height > 0 && image.width > 0, ErrorCode::kInvalidArgument,
          "an image of {} x {} pixels cannot be resized", image.height, image.width);
  Require(height > 0 && width > 0 && height <= kMaxImagePixels / width, ErrorCode::kInvalidArgument,
          "an image cannot be resized to {} x {} pixels", height, width);
  if (image.height == height && image.width == width) return image;

  const std::vector<Tap> across = MakeTaps(image.width, width);
  const std::vector<Tap> down = MakeTaps(image.height, height);
  const int64_t in_stride = image.width * image.channels, stride = width * image.channels;
  Image out{height, width, image.channels, std::vector<uint8_t>(height * stride)};
  std::vector<int> upper(stride), lower(stride);
  int64_t upper_row = -1, lower_row = -1;
  for (int64_t y = 0; y < height; ++y) {
    const Tap& tap = down[y];
    // The lower row often becomes the upper row of the next output row.
    if (tap.first == lower_row) {
      upper.swap(lower);
      std::swap(upper_row, lower_row);
    }
    if (tap.first != upper_row) {
      ResizeRow(&image.pixels[tap.first * in_stride], across, image.channels, upper.data());
      upper_row = tap.first;
    }
    if (tap.second != lower_row) {
      ResizeRow(&image.pixels[tap.second * in_stride], across, image.channels, lower.data());
      lower_row = tap.second;
    }
    uint8_t* to = &out.pixels[y * stride];
    for (int64_t i = 0; i < stride; ++i) {
      to[i] = Blend(upper[i], tap.first_weight, lower[i], tap.second_weight);
    }
  }
  return out;
}

}  // namespace hearth::image
