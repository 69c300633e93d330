// Where a window of a picture lands in the square that a net sees.
#pragma once

#include <cstdint>

#include "hearth/caffe/data/window_list.h"

namespace hearth::caffe {

struct WindowCrop {
  int64_t crop_size = 0;
  int64_t context_pad = 0;  // pixels around the window, counted in the square
  bool square = false;      // extend the window to a square instead of distorting it
};

// The part of the picture that is cut out, and the part of the square that it fills; what lies
// outside of the picture stays zero.
struct WindowPlace {
  int64_t x1, y1, x2, y2;            // both corners inside
  int64_t left, top, width, height;  // in the square
};

// `mirror`: the padding on the right comes to the left.
WindowPlace PlaceWindow(const PictureWindow& window, const WindowList::Picture& picture,
                        const WindowCrop& crop, bool mirror);

}  // namespace hearth::caffe
