// Converts the images of rows to the floats of a data layer's top: decodes, resizes and transforms
// them, and rejects images of a wrong size. Immutable after construction and thread-safe.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "hearth/caffe/data/data_transformer.h"

namespace hearth::caffe {

// Size of a decoded image.
struct ImageSize {
  int64_t channels = 0, height = 0, width = 0;

  int64_t count() const { return channels * height * width; }
  bool operator==(const ImageSize&) const = default;
};

// Reads images for one top. Each Read function writes output().count() floats and makes random
// choices that depend on `seed` only. It throws kDataLoss, with the reason, for an invalid image.
class ImageReader {
 public:
  // Each image must have the size `input`, unless `resize` is set: then it is resized to `input`.
  // With a crop and without `resize`, any image that is large enough for the crop is accepted.
  ImageReader(const TransformationParameter& transform, Phase phase, ImageSize input, bool resize);

  const ImageSize& output() const { return output_; }

  // Reads a JPEG or PNG file.
  void ReadEncoded(std::string_view bytes, uint64_t seed, float* out) const;
  // Reads an image with one byte per value, in the order channels, rows, columns.
  void ReadRaw(std::string_view bytes, ImageSize size, uint64_t seed, float* out) const;
  // Reads an image with one float per value, in the same order. Such an image is never resized.
  void ReadFloats(std::span<const float> values, ImageSize size, uint64_t seed, float* out) const;

 private:
  void ReadImage(const image::Image& image, uint64_t seed, float* out) const;
  template <typename T>
  void Transform(const PixelView<T>& image, uint64_t seed, float* out) const;

  DataTransformer transformer_;
  const ImageSize input_;
  const bool resize_;
  ImageSize output_;
};

}  // namespace hearth::caffe
