#include "hearth/caffe/data/window_crop.h"

#include <algorithm>
#include <cmath>

namespace hearth::caffe {
namespace {

int64_t Round(float value) { return static_cast<int64_t>(std::round(value)); }

// One axis of a window with its context. The constructor clips the window at the image's borders,
// and scales the remaining part by the factor of the whole window.
struct Axis {
  int64_t first, last, pad_before, pad_after, size;

  // Follows Caffe's WindowDataLayer step by step, including its rounding.
  Axis(float centre, float half, int64_t extent, int64_t crop_size) {
    first = Round(centre - half);
    last = Round(centre + half);
    // Computed before clipping, so that the padding has the same scale as the pixels.
    const float scale = static_cast<float>(crop_size) / static_cast<float>(last - first + 1);
    const int64_t before = std::max<int64_t>(0, -first);
    const int64_t after = std::max<int64_t>(0, last - extent + 1);
    first += before;
    last -= after;
    size = Round(static_cast<float>(last - first + 1) * scale);
    pad_before = Round(static_cast<float>(before) * scale);
    pad_after = Round(static_cast<float>(after) * scale);
  }
};

}  // namespace

WindowPlacement PlaceWindow(const ImageWindow& window, const WindowList::Image& image,
                            const WindowCrop& crop, bool mirror) {
  const int64_t size = crop.crop_size;
  if (crop.context_pad == 0 && !crop.square) {
    return {window.x1, window.y1, window.x2, window.y2, 0, 0, size, size};
  }
  // Factor by which the window is enlarged, so that the window itself fills the crop except for
  // context_pad pixels on each side.
  const float context = static_cast<float>(size) / static_cast<float>(size - 2 * crop.context_pad);
  float half_width = static_cast<float>(window.x2 - window.x1 + 1) / 2;
  float half_height = static_cast<float>(window.y2 - window.y1 + 1) / 2;
  const float x = static_cast<float>(window.x1) + half_width;
  const float y = static_cast<float>(window.y1) + half_height;
  if (crop.square) half_width = half_height = std::max(half_width, half_height);
  const Axis columns(x, half_width * context, image.width, size);
  const Axis rows(y, half_height * context, image.height, size);
  const int64_t left = mirror ? columns.pad_after : columns.pad_before;
  // Rounding may make the scaled part and the padding together a pixel larger than the crop.
  return {columns.first,
          rows.first,
          columns.last,
          rows.last,
          left,
          rows.pad_before,
          std::min(columns.size, size - left),
          std::min(rows.size, size - rows.pad_before)};
}

}  // namespace hearth::caffe
