// A decoded image, and the color modes of decoding.
#pragma once

#include <cstdint>
#include <vector>

namespace hearth::image {

// A decoded image. Rows are in order from top to bottom. Channels are interleaved: 1 is gray, 3
// blue-green-red, 4 blue-green-red-alpha.
struct Image {
  int64_t height = 0, width = 0, channels = 0;
  std::vector<uint8_t> pixels;  // height * width * channels
};

enum class ColorMode {
  kColor,      // always 3 channels
  kGray,       // always 1 channel
  kUnchanged,  // the file's number of channels: 1, 3 or 4
};

// Images with more pixels are rejected before memory is allocated for them.
inline constexpr int64_t kMaxImagePixels = int64_t{1} << 26;

}  // namespace hearth::image
