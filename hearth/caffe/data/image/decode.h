// JPEG and PNG bytes to pixels. Thread-safe.
#pragma once

#include <string_view>

#include "hearth/caffe/data/image/image.h"

namespace hearth::caffe {

// Finds the format by its first bytes. Throws kDataLoss, saying what is wrong, for bytes that are
// no such picture, damaged, cut short, or larger than kMaxImagePixels.
Image DecodeImage(std::string_view bytes, ColorMode mode);

}  // namespace hearth::caffe
