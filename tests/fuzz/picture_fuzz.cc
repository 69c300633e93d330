// JPEG and PNG: header and pixels, in all colour modes.
#include "hearth/caffe/data/image/decode.h"
#include "tests/fuzz/input.h"

using namespace hearth;  // an entry function, nothing else

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  for (const auto mode :
       {caffe::ColorMode::kUnchanged, caffe::ColorMode::kColor, caffe::ColorMode::kGray}) {
    fuzz::Refusable([&] {
      const caffe::Image image = caffe::DecodeImage(fuzz::Text(data, size), mode);
      const auto pixels = static_cast<size_t>(image.height * image.width * image.channels);
      if (image.pixels.size() != pixels) __builtin_trap();
    });
  }
  return 0;
}
