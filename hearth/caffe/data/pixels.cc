#include "hearth/caffe/data/pixels.h"

#include <algorithm>

#include "hearth/base/error.h"
#include "hearth/image/decode.h"

namespace hearth::caffe {
namespace {

ImageSize SizeOf(const image::Image& image) { return {image.channels, image.height, image.width}; }
ImageSize SizeOf(const Datum& datum) { return {datum.channels(), datum.height(), datum.width()}; }

void RequireImage(const Datum& datum) {
  const ImageSize size = SizeOf(datum);
  // Sizes from a file are limited before they are multiplied. (2^20)^3 fits 64 bits.
  constexpr int64_t kMost = 1 << 20;
  const bool possible = std::min({size.channels, size.height, size.width}) > 0 &&
                        std::max({size.channels, size.height, size.width}) <= kMost;
  // Bytes take precedence over float_data, as in Caffe.
  const size_t values = datum.data().empty() ? datum.float_data().size() : datum.data().size();
  Require(possible && static_cast<int64_t>(values) == size.count(), ErrorCode::kDataLoss,
          "a Datum with {} values is not an image of {} x {} x {}", values, size.channels,
          size.height, size.width);
}

}  // namespace

// An encoded image contains its size. The Datum's size fields are often 0 then.
Pixels::Pixels(Datum datum, image::ColorMode mode) {
  if (datum.encoded()) {
    values_ = image::DecodeImage(datum.data(), mode);
  } else {
    RequireImage(datum);
    values_ = std::move(datum);
  }
}

ImageSize Pixels::size() const {
  return std::visit([](const auto& values) { return SizeOf(values); }, values_);
}

void Pixels::Transform(const DataTransformer& transformer, uint64_t seed, float* out) const {
  if (const auto* image = std::get_if<image::Image>(&values_)) {
    return transformer.TransformBySeed(ViewOf(*image), seed, out);
  }
  const Datum& datum = std::get<Datum>(values_);
  // The values, bytes or else float_data, are in the order channels, rows, columns.
  const auto planes = [&](const auto* values) {
    using T = std::remove_cvref_t<decltype(*values)>;
    transformer.TransformBySeed(
        PixelView<T>::Planes(values, datum.channels(), datum.height(), datum.width()), seed, out);
  };
  if (datum.data().empty()) {
    planes(datum.float_data().data());
  } else {
    planes(reinterpret_cast<const uint8_t*>(datum.data().data()));
  }
}

}  // namespace hearth::caffe
