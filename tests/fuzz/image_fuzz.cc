// JPEG and PNG: header and pixels in all color modes, and a random crop, perhaps decoded reduced.
#include <vector>

#include "hearth/image/decode.h"
#include "hearth/image/image_transform.h"
#include "tests/fuzz/input.h"

using namespace hearth;  // this file defines only an entry function

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  for (const auto mode :
       {image::ColorMode::kUnchanged, image::ColorMode::kColor, image::ColorMode::kGray}) {
    fuzz::Refusable([&] {
      const image::Image image = image::DecodeImage(fuzz::Text(data, size), mode);
      const auto pixels = static_cast<size_t>(image.height * image.width * image.channels);
      if (image.pixels.size() != pixels) __builtin_trap();
    });
  }
  image::ImageOptions options;
  options.kind = image::ImageKind::kAny;
  options.height = options.width = 24;
  const image::ImageTransform transform(options);
  std::vector<std::byte> out(transform.bytes_per_image());
  fuzz::Refusable([&] { transform.Apply(fuzz::Text(data, size), size, out.data()); });
  return 0;
}
