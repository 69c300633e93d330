#pragma once

#include <string_view>
#include <variant>

#include "hearth/caffe/data/data_transformer.h"
#include "hearth/caffe/data/image_reader.h"

namespace hearth::caffe {

// An image from any kind of file: either decoded, or the raw values of a Datum.
class Pixels {
 public:
  explicit Pixels(image::Image image) : values_(std::move(image)) {}
  // Decodes the Datum's image if it is encoded. Throws kDataLoss if there is no image.
  Pixels(Datum datum, image::ColorMode mode);

  ImageSize size() const;
  // Writes the transformed image to `out`. Random choices depend on `seed` only. Throws kDataLoss
  // if the image has a wrong size.
  void Transform(const DataTransformer& transformer, uint64_t seed, float* out) const;

 private:
  std::variant<image::Image, Datum> values_;
};

}  // namespace hearth::caffe
