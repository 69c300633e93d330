// Datum: a database record, converted to floats as by the Data layer.
#include <vector>

#include "hearth/caffe/data/pixels.h"
#include "hearth/caffe/proto/messages.h"
#include "hearth/caffe/proto/wire_reader.h"
#include "tests/fuzz/input.h"

using namespace hearth;  // this file defines only an entry function

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static const caffe::DataTransformer transformer(caffe::TransformationParameter(), caffe::TEST);
  fuzz::Refusable([&] {
    caffe::Datum datum;
    caffe::ParseWire(fuzz::Text(data, size), "its Datum", &datum);
    const caffe::Pixels pixels(std::move(datum), image::ColorMode::kUnchanged);
    std::vector<float> out(static_cast<size_t>(pixels.size().count()));
    pixels.Transform(transformer, 1, out.data());
  });
  return 0;
}
