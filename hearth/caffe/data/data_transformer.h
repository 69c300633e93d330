#pragma once

#include <cstdint>
#include <vector>

#include "hearth/caffe/data/mean_file.h"
#include "hearth/caffe/proto/messages.h"
#include "hearth/caffe/tensor/random.h"
#include "hearth/image/image.h"

namespace hearth::caffe {

// A view of pixels that the caller owns. Strides are in elements and allow both C,H,W and H,W,C.
template <typename T>
struct PixelView {
  const T* data;
  int64_t channels, height, width;
  int64_t channel_stride, row_stride, column_stride;

  // Packed in the order channels, rows, columns, like the raw bytes of Caffe's Datum.
  static PixelView Planes(const T* data, int64_t channels, int64_t height, int64_t width) {
    return {data, channels, height, width, height * width, width, 1};
  }
};

PixelView<uint8_t> ViewOf(const image::Image& image);

// Transforms images for the net as transform_param says: crops, mirrors, subtracts the mean and
// scales, in this order. Immutable after construction and thread-safe.
class DataTransformer {
 public:
  // Reads the mean file. Throws kInvalidArgument for mutually exclusive fields.
  DataTransformer(const TransformationParameter& param, Phase phase);

  // The color mode in which images are decoded for a net whose input has `channels` channels.
  image::ColorMode color_mode(int64_t channels) const;

  // Number of output rows or columns for `size` input rows or columns.
  int64_t OutputSize(int64_t size) const { return crop_ > 0 ? crop_ : size; }
  bool crops() const { return crop_ > 0; }

  // Throws kDataLoss, naming both sizes, if an image is smaller than the crop or its size differs
  // from the mean image's.
  void RequireFits(int64_t channels, int64_t height, int64_t width) const;

  // Returns true if Choose uses random numbers.
  bool is_random() const { return mirror_ || (crop_ > 0 && phase_ == TRAIN); }

  // How one image is transformed. Choose() mirrors images at random in both phases, and crops them
  // at random in TRAIN but at the center in TEST.
  struct Choice {
    int64_t top = 0, left = 0;
    bool mirror = false;
  };
  Choice Choose(int64_t height, int64_t width, Random& random) const;
  // The center crop, not mirrored. For transformers with is_random() == false.
  Choice Centre(int64_t height, int64_t width) const;

  // Writes channels x OutputSize(height) x OutputSize(width) floats. RequireFits must have accepted
  // the image's size.
  void Transform(const PixelView<uint8_t>& image, const Choice& choice, float* out) const;
  void Transform(const PixelView<float>& image, const Choice& choice, float* out) const;
  // Transforms with the random choices that follow from `seed`. Throws like RequireFits.
  template <typename T>
  void TransformBySeed(const PixelView<T>& image, uint64_t seed, float* out) const {
    RequireFits(image.channels, image.height, image.width);
    if (!is_random()) return Transform(image, Centre(image.height, image.width), out);
    Random random(seed);
    Transform(image, Choose(image.height, image.width, random), out);
  }

 private:
  template <typename T>
  void Run(const PixelView<T>& image, const Choice& choice, float* out) const;

  const Phase phase_;
  const float scale_;
  const bool mirror_;
  const int64_t crop_;
  const bool force_color_, force_gray_;
  std::vector<float> mean_values_;  // empty, one, or one per channel
  MeanImage mean_;                  // from the mean file
};

}  // namespace hearth::caffe
