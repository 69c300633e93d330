// Sums over the neighbourhood of every value of one image (channels, rows, columns). Values beyond
// the border count as zero. Thread-safe; `values` and `sums` must not overlap.
#pragma once

#include <cstdint>

namespace hearth::caffe {

// Size of one image.
struct ImageShape {
  int64_t channels = 0, height = 0, width = 0;
  int64_t size() const { return channels * height * width; }
};

// Sums over `size` (odd) channels, centred at each channel, at the same pixel.
void SumAcrossChannels(const ImageShape& shape, int64_t size, const float* values, float* sums);

// Sums over the size x size square around each pixel, in the same channel. `scratch` has the size
// of one channel.
void SumWithinChannels(const ImageShape& shape, int64_t size, const float* values, float* scratch,
                       float* sums);

}  // namespace hearth::caffe
