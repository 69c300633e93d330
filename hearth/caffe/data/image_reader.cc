#include "hearth/caffe/data/image_reader.h"

#include <array>

#include "hearth/base/error.h"
#include "hearth/caffe/tensor/shape_count.h"
#include "hearth/image/decode.h"
#include "hearth/image/resize.h"

namespace hearth::caffe {
namespace {

// Converts a raw image, which stores one channel after another, to the interleaved pixels that
// Resize requires.
image::Image ToImage(std::string_view planes, const ImageSize& size) {
  image::Image image{size.height, size.width, size.channels, std::vector<uint8_t>(size.count())};
  const int64_t plane = size.height * size.width;
  for (int64_t c = 0; c < size.channels; ++c) {
    for (int64_t i = 0; i < plane; ++i) {
      image.pixels[i * size.channels + c] = static_cast<uint8_t>(planes[c * plane + i]);
    }
  }
  return image;
}

void RequireCount(size_t count, const ImageSize& size, const char* unit) {
  // The sizes may come from a row, so their product may overflow.
  const std::array dimensions = {size.channels, size.height, size.width};
  Require(CountOf(dimensions) == static_cast<int64_t>(count), ErrorCode::kDataLoss,
          "{} {} are not an image of {} x {} x {}", count, unit, size.channels, size.height,
          size.width);
}

}  // namespace

ImageReader::ImageReader(const TransformationParameter& transform, Phase phase, ImageSize input,
                         bool resize)
    : transformer_(transform, phase), input_(input), resize_(resize) {
  Require(input.channels > 0 && input.height > 0 && input.width > 0, ErrorCode::kInvalidArgument,
          "images cannot have {} channels, height {} and width {}: set all three above 0",
          input.channels, input.height, input.width);
  output_ = {input.channels, transformer_.OutputSize(input.height),
             transformer_.OutputSize(input.width)};
  // Checks mean_values here, since a wrong number of them would make every row invalid. A mean
  // file, and a crop larger than `input`, are checked against each row's image instead.
  if (!transform.has_mean_file() && input.height >= output_.height &&
      input.width >= output_.width) {
    transformer_.RequireFits(input.channels, input.height, input.width);
  }
}

void ImageReader::ReadEncoded(std::string_view bytes, uint64_t seed, float* out) const {
  ReadImage(image::DecodeImage(bytes, transformer_.color_mode(input_.channels)), seed, out);
}

void ImageReader::ReadRaw(std::string_view bytes, ImageSize size, uint64_t seed, float* out) const {
  RequireCount(bytes.size(), size, "bytes");
  if (resize_) {
    ReadImage(ToImage(bytes, size), seed, out);
  } else {
    Transform(PixelView<uint8_t>::Planes(reinterpret_cast<const uint8_t*>(bytes.data()),
                                         size.channels, size.height, size.width),
              seed, out);
  }
}

void ImageReader::ReadFloats(std::span<const float> values, ImageSize size, uint64_t seed,
                             float* out) const {
  RequireCount(values.size(), size, "numbers");
  Transform(PixelView<float>::Planes(values.data(), size.channels, size.height, size.width), seed,
            out);
}

void ImageReader::ReadImage(const image::Image& image, uint64_t seed, float* out) const {
  if (resize_) {
    Transform(ViewOf(image::Resize(image, input_.height, input_.width)), seed, out);
  } else {
    Transform(ViewOf(image), seed, out);
  }
}

template <typename T>
void ImageReader::Transform(const PixelView<T>& image, uint64_t seed, float* out) const {
  // With a crop, the output always has the same size, so any image that is large enough for the
  // crop is accepted.
  const bool same_size = image.height == input_.height && image.width == input_.width;
  Require(image.channels == input_.channels && (same_size || transformer_.crops()),
          ErrorCode::kDataLoss, "an image of {} x {} x {} does not match the layer's {} x {} x {}",
          image.channels, image.height, image.width, input_.channels, input_.height, input_.width);
  transformer_.TransformBySeed(image, seed, out);
}

}  // namespace hearth::caffe
