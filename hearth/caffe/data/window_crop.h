// Places a window of an image in the square input of a net.
#pragma once

#include <cstdint>

#include "hearth/caffe/data/window_list.h"

namespace hearth::caffe {

// Options of PlaceWindow(), which have the names of their fields in transform_param and
// window_data_param.
struct WindowCrop {
  int64_t crop_size = 0;
  int64_t context_pad = 0;  // pixels of context around the window, inside the square
  bool square = false;      // extends the window to a square instead of distorting it
};

// The part of the image to crop, and the part of the net's square input that it fills. The rest of
// the square, which would be outside of the image, is zero.
struct WindowPlacement {
  int64_t x1, y1, x2, y2;            // corners in the image, inclusive
  int64_t left, top, width, height;  // in the square
};

// With `mirror`, returns the placement of the mirrored window: the padding on the right moves to
// the left.
WindowPlacement PlaceWindow(const ImageWindow& window, const WindowList::Image& image,
                            const WindowCrop& crop, bool mirror);

}  // namespace hearth::caffe
