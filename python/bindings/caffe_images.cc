// hearth.native._caffe: images, from file bytes to a net's input.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/string.h>

#include <string>
#include <vector>

#include "caffe_module.h"
#include "hearth/base/error.h"
#include "hearth/caffe/data/data_transformer.h"
#include "hearth/caffe/proto/text_reader.h"
#include "hearth/image/decode.h"
#include "hearth/image/resize.h"
#include "new_array.h"

namespace nb = nanobind;
using namespace nb::literals;

namespace hearth::bindings {
namespace {

using caffe::DataTransformer;
using caffe::PixelView;

template <typename T>
using Array3 = nb::ndarray<const T, nb::ndim<3>, nb::c_contig, nb::device::cpu>;
template <typename T>
using NewArray3 = nb::ndarray<nb::numpy, T, nb::ndim<3>>;

NewArray3<uint8_t> ImageToArray(image::Image image) {
  const std::vector<size_t> shape = {static_cast<size_t>(image.height),
                                     static_cast<size_t>(image.width),
                                     static_cast<size_t>(image.channels)};
  return ArrayOver<NewArray3<uint8_t>>(std::move(image.pixels), shape);
}

image::ColorMode ColorModeOf(const std::string& name) {
  if (name == "color") return image::ColorMode::kColor;
  if (name == "gray") return image::ColorMode::kGray;
  if (name == "unchanged") return image::ColorMode::kUnchanged;
  Throw(ErrorCode::kInvalidArgument, "colors must be color, gray or unchanged, not '{}'", name);
}

NewArray3<uint8_t> Decode(const nb::bytes& bytes, const std::string& colors) {
  return ImageToArray(image::DecodeImage({bytes.c_str(), bytes.size()}, ColorModeOf(colors)));
}

NewArray3<uint8_t> ResizeArray(const Array3<uint8_t>& array, int64_t height, int64_t width) {
  image::Image image{static_cast<int64_t>(array.shape(0)),
                     static_cast<int64_t>(array.shape(1)),
                     static_cast<int64_t>(array.shape(2)),
                     {}};
  // The pixels are copied because NumPy's memory may be read-only or may change meanwhile.
  image.pixels.assign(array.data(), array.data() + array.size());
  return ImageToArray(image::Resize(image, height, width));
}

template <typename T>
NewArray3<float> Transform(const std::string& param_text, const std::string& phase,
                           const Array3<T>& array, uint64_t seed) {
  caffe::TransformationParameter param;
  caffe::ParseText(param_text, "transform_param", &param);
  const DataTransformer transformer(param, phase == "TRAIN" ? caffe::TRAIN : caffe::TEST);
  const int64_t channels = array.shape(0), height = array.shape(1), width = array.shape(2);
  transformer.RequireFits(channels, height, width);
  caffe::Random random(seed);
  const int64_t out_height = transformer.OutputSize(height);
  const int64_t out_width = transformer.OutputSize(width);
  std::vector<float> out(channels * out_height * out_width);
  transformer.Transform(PixelView<T>::Planes(array.data(), channels, height, width),
                        transformer.Choose(height, width, random), out.data());
  return ArrayOver<NewArray3<float>>(
      std::move(out),
      {array.shape(0), static_cast<size_t>(out_height), static_cast<size_t>(out_width)});
}

}  // namespace

void RegisterImages(nb::module_& m) {
  m.def(
      "decode_image", Decode, "data"_a, "colors"_a = "color",
      "Decodes JPEG or PNG bytes to uint8 of shape (height, width, channels), blue-green-red. "
      "`colors`: color, gray or unchanged. Raises HearthError for truncated or undecodable bytes.");
  m.def("resize_image", ResizeArray, "image"_a, "height"_a, "width"_a,
        "Resizes a uint8 image (height, width, channels) bilinearly.");
  const char* transform_doc =
      "Applies transform_param (as text) to an image (channels, height, width) in phase TRAIN "
      "or TEST: float32 (channels, height, width). Random choices depend on `seed` only.";
  m.def("transform_image", Transform<uint8_t>, "transform_param"_a, "phase"_a, "image"_a,
        "seed"_a = 0, transform_doc);
  m.def("transform_image", Transform<float>, "transform_param"_a, "phase"_a, "image"_a,
        "seed"_a = 0, transform_doc);
}

}  // namespace hearth::bindings
