// Bilinear resampling of red-green-blue lines. When an image shrinks, it is smoothed with a
// triangle filter whose half width is one output pixel (antialias), as in PIL and torchvision.
// Lines are resampled horizontally first, and each pass rounds to 8 bits. All pixels are within one
// level of PIL's result, because weights have 14 bits.
#pragma once

#include <cstdint>
#include <vector>

#include "hearth/image/placement.h"

namespace hearth::image {

// The weights of the source pixels for each output pixel, along one side of an image. The object
// can be reused: Build() replaces the weights.
class ResampleTable {
 public:
  // Pads weights with zeros to a multiple of `group`. With `mirrored`, the order of the outputs is
  // reversed.
  void Build(const AxisPlacement& axis, int64_t count, int group, bool mirrored);

  int64_t count() const { return static_cast<int64_t>(ranges_.size()); }
  // Number of weights per output pixel, including the padding.
  int64_t taps() const { return taps_; }
  // The first source pixel of output pixel `i`, counted from low().
  int64_t first(int64_t i) const { return ranges_[i].first - offset_; }
  const int16_t* weights(int64_t i) const { return &weights_[i * taps_]; }
  // The source pixels in [low(), high()) have weights.
  int64_t low() const { return low_; }
  int64_t high() const { return high_; }

 private:
  // The source pixels [first, end) of an output pixel.
  struct Range {
    int64_t first, end;
  };

  std::vector<Range> ranges_;  // counted from the low of the AxisPlacement
  std::vector<int16_t> weights_;
  std::vector<double> exact_;
  int64_t taps_ = 0, offset_ = 0, low_ = 0, high_ = 0;
};

inline constexpr int kColumnGroup = 4;
inline constexpr int kRowGroup = 2;

// Resamples a line of 3-byte pixels, which starts at table.low(), to table.count() pixels of 4
// bytes, the last of which is 0. LinePadding() bytes after the end of the line must be readable.
void ResampleLine(const uint8_t* line, const ResampleTable& table, uint32_t* out);
int64_t LinePadding(const ResampleTable& table);

// Sets out[i] to the sum of weights[k] * lines[k][i] over `taps` lines, for `count` pixels. `taps`
// must be even, and the lines and `out` must have space for PaddedPixels(count).
void BlendLines(const uint32_t* const* lines, const int16_t* weights, int64_t taps, int64_t count,
                uint32_t* out);
inline int64_t PaddedPixels(int64_t count) { return (count + 7) / 8 * 8; }

}  // namespace hearth::image
