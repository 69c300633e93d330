#include "hearth/image/placement.h"

#include <algorithm>
#include <cmath>
#include <random>

namespace hearth::image {
namespace {

// Parameters of torchvision's RandomResizedCrop: the crop's share of the image's area, its ratio of
// width to height, and the number of tries after which it uses the largest crop in the center.
constexpr double kMinArea = 0.08, kMaxArea = 1;
constexpr double kMinRatio = 3.0 / 4, kMaxRatio = 4.0 / 3;
constexpr int kTries = 10;
// As in ImageNet's reference evaluation: an image is resized to 256 for a crop of 224.
constexpr double kCenterMargin = 256.0 / 224;

// Random draws. The class implements the distributions itself: the C++ standard defines the numbers
// of mt19937_64, but its distributions differ between libraries.
class Draws {
 public:
  explicit Draws(uint64_t seed) : engine_(seed) {}

  double Uniform(double low, double high) {
    return low + (high - low) * (static_cast<double>(engine_() >> 11) * 0x1p-53);
  }
  // A nearly uniform number in [0, count), if count is below 2^32.
  int64_t Below(int64_t count) {
    return static_cast<int64_t>((engine_() >> 32) * static_cast<uint64_t>(count) >> 32);
  }

 private:
  std::mt19937_64 engine_;
};

AxisPlacement Cut(int64_t low, int64_t count, int64_t out) {
  return {low, low + count, 0, static_cast<double>(count) / static_cast<double>(out)};
}

// Rounds half to even, like Python.
int64_t Round(double value) { return std::llrint(value); }

void PlaceAtRandom(const ImageOptions& options, int64_t height, int64_t width, Draws& draws,
                   Placement* placement) {
  const double area = static_cast<double>(height) * static_cast<double>(width);
  int64_t crop_height = 0, crop_width = 0, top = 0, left = 0;
  bool found = false;
  for (int i = 0; i < kTries && !found; ++i) {
    const double target = area * draws.Uniform(kMinArea, kMaxArea);
    // The ratio is uniform in the logarithm, so that 3/4 and 4/3 are equally likely.
    const double ratio = std::exp(draws.Uniform(std::log(kMinRatio), std::log(kMaxRatio)));
    crop_width = Round(std::sqrt(target * ratio));
    crop_height = Round(std::sqrt(target / ratio));
    found = crop_width > 0 && crop_width <= width && crop_height > 0 && crop_height <= height;
  }
  if (found) {
    top = draws.Below(height - crop_height + 1);
    left = draws.Below(width - crop_width + 1);
  } else {
    const double ratio = static_cast<double>(width) / static_cast<double>(height);
    crop_width = width;
    crop_height = height;
    if (ratio < kMinRatio) crop_height = Round(static_cast<double>(width) / kMinRatio);
    if (ratio > kMaxRatio) crop_width = Round(static_cast<double>(height) * kMaxRatio);
    top = (height - crop_height) / 2;
    left = (width - crop_width) / 2;
  }
  placement->rows = Cut(top, crop_height, options.height);
  placement->columns = Cut(left, crop_width, options.width);
}

// Resizes a side of `size` pixels to `resized` pixels, and selects `out` pixels in the middle.
AxisPlacement Middle(int64_t size, int64_t resized, int64_t out) {
  const double step = static_cast<double>(size) / static_cast<double>(resized);
  const int64_t offset = Round(static_cast<double>(resized - out) / 2);
  return {0, size, static_cast<double>(offset) * step, step};
}

// Uses the smallest resized image that covers the output and its margin.
void PlaceInCenter(const ImageOptions& options, int64_t height, int64_t width,
                   Placement* placement) {
  const auto with_margin = [](int64_t out) {
    return std::max(out, Round(static_cast<double>(out) * kCenterMargin));
  };
  const int64_t least_height = with_margin(options.height);
  const int64_t least_width = with_margin(options.width);
  int64_t resized_height = least_height, resized_width = least_width;
  if (least_height * width >= least_width * height) {
    resized_width = std::max(least_width, least_height * width / height);
  } else {
    resized_height = std::max(least_height, least_width * height / width);
  }
  placement->rows = Middle(height, resized_height, options.height);
  placement->columns = Middle(width, resized_width, options.width);
}

}  // namespace

Placement Place(const ImageOptions& options, int64_t height, int64_t width, uint64_t seed) {
  Draws draws(seed);
  Placement placement;
  // Mirroring is drawn first, so that it does not depend on the number of tries below.
  placement.mirrored = options.flip && draws.Below(2) == 1;
  switch (options.crop) {
    case CropMode::kNone:
      placement.rows = Cut(0, height, options.height);
      placement.columns = Cut(0, width, options.width);
      break;
    case CropMode::kRandom:
      PlaceAtRandom(options, height, width, draws, &placement);
      break;
    case CropMode::kCenter:
      PlaceInCenter(options, height, width, &placement);
      break;
  }
  return placement;
}

AxisPlacement Reduce(const AxisPlacement& axis, int64_t factor, int64_t size) {
  const auto divisor = static_cast<double>(factor);
  const int64_t low = axis.low / factor;
  const double begin = (static_cast<double>(axis.low) + axis.begin) / divisor;
  return {low, std::min(size, (axis.high + factor - 1) / factor), begin - static_cast<double>(low),
          axis.step / divisor};
}

}  // namespace hearth::image
