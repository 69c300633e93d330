// A picture as a file of any kind holds it: decoded colours, or the raw values of a Datum.
#pragma once

#include <string_view>
#include <variant>

#include "hearth/caffe/data/data_transformer.h"
#include "hearth/caffe/data/picture_reader.h"

namespace hearth::caffe {

class Pixels {
 public:
  explicit Pixels(image::Image image) : values_(std::move(image)) {}
  // A Datum's picture, decoded if it is encoded. Throws kDataLoss where it has no picture.
  Pixels(Datum datum, image::ColorMode mode);

  PictureSize size() const;
  // Writes what the transformer makes of it, random choices drawn from `seed`. Throws kDataLoss
  // where it does not fit.
  void Transform(const DataTransformer& transformer, uint64_t seed, float* out) const;

 private:
  std::variant<image::Image, Datum> values_;
};

}  // namespace hearth::caffe
