// One PNG file by libpng. Thread-safe.
#pragma once

#include <string_view>

#include "hearth/caffe/data/image/image.h"

namespace hearth::caffe {

// 16-bit samples keep their upper byte; palettes are expanded; transparency is dropped unless the
// mode is kUnchanged. Throws kDataLoss as DecodeImage does.
Image DecodePng(std::string_view bytes, ColorMode mode);

}  // namespace hearth::caffe
