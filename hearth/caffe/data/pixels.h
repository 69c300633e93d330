#pragma once

#include <string_view>
#include <variant>

#include "hearth/caffe/data/data_transformer.h"
#include "hearth/caffe/data/image_reader.h"

namespace hearth::caffe {

// An image from a file of any kind: decoded, or the raw values of a Datum.
class Pixels {
 public:
  explicit Pixels(image::Image image) : values_(std::move(image)) {}
  // A Datum's image, decoded if it is encoded. Throws kDataLoss if it has none.
  Pixels(Datum datum, image::ColorMode mode);

  ImageSize size() const;
  // Writes the transformed image, with random choices from `seed`. Throws kDataLoss if its size is
  // wrong.
  void Transform(const DataTransformer& transformer, uint64_t seed, float* out) const;

 private:
  std::variant<image::Image, Datum> values_;
};

}  // namespace hearth::caffe
