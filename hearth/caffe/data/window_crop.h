// Places a window of an image in the square input of a net.
#pragma once

#include <cstdint>

#include "hearth/caffe/data/window_list.h"

namespace hearth::caffe {

// Options of the crop: transform_param's and window_data_param's fields of these names.
struct WindowCrop {
  int64_t crop_size = 0;
  int64_t context_pad = 0;  // pixels around the window, included in the square
  bool square = false;      // extend the window to a square instead of distorting it
};

// The part of the image that is cropped, and the part of the square that it fills; pixels outside
// of the image are zero.
struct WindowPlacement {
  int64_t x1, y1, x2, y2;            // both corners inclusive
  int64_t left, top, width, height;  // in the square
};

// `mirror`: the padding on the right moves to the left.
WindowPlacement PlaceWindow(const ImageWindow& window, const WindowList::Image& image,
                            const WindowCrop& crop, bool mirror);

}  // namespace hearth::caffe
