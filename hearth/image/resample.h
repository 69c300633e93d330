// Bilinear resampling of red-green-blue lines that smooths when shrinking (antialias), like PIL and
// torchvision: a triangle filter as wide as an output pixel, horizontally first, each pass rounded
// to 8 bits. Within one level of PIL's result in all pixels, as weights have 14 bits.
#pragma once

#include <cstdint>
#include <vector>

#include "hearth/image/placement.h"

namespace hearth::image {

// The weights of the source pixels for each output pixel along one side. Reusable: Build()
// replaces.
class ResampleTable {
 public:
  // Weights are padded with zeros to a multiple of `group`. Mirrored: the last output comes first.
  void Build(const AxisPlacement& axis, int64_t count, int group, bool mirrored);

  int64_t count() const { return static_cast<int64_t>(ranges_.size()); }
  // Number of source pixels per output pixel, including zeros at the end.
  int64_t taps() const { return taps_; }
  // The first source pixel of output `i`, counted from low().
  int64_t first(int64_t i) const { return ranges_[i].first - offset_; }
  const int16_t* weights(int64_t i) const { return &weights_[i * taps_]; }
  // The source pixels that have a weight: [low(), high()).
  int64_t low() const { return low_; }
  int64_t high() const { return high_; }

 private:
  // Source pixels [first, end) of an output pixel.
  struct Range {
    int64_t first, end;
  };

  std::vector<Range> ranges_;  // of source pixels, relative to the axis's low
  std::vector<int16_t> weights_;
  std::vector<double> exact_;
  int64_t taps_ = 0, offset_ = 0, low_ = 0, high_ = 0;
};

inline constexpr int kColumnGroup = 4;
inline constexpr int kRowGroup = 2;

// Resamples a line of 3-byte pixels, from table.low() on, to table.count() pixels of 4 bytes, the
// last 0. The line is readable up to LinePadding() bytes after its end.
void ResampleLine(const uint8_t* line, const ResampleTable& table, uint32_t* out);
int64_t LinePadding(const ResampleTable& table);

// out[i] = the sum of weights[k] * lines[k][i] over `taps` (even) lines, for `count` pixels; lines
// and `out` have capacity for PaddedPixels(count).
void BlendLines(const uint32_t* const* lines, const int16_t* weights, int64_t taps, int64_t count,
                uint32_t* out);
inline int64_t PaddedPixels(int64_t count) { return (count + 7) / 8 * 8; }

}  // namespace hearth::image
