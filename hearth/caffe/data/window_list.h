// The source of WindowData: images, each with windows that show an object or background.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace hearth::caffe {

// A window of one of a list's images.
struct ImageWindow {
  size_t image = 0;
  int32_t label = 0;                       // 0: background
  int32_t x1 = 0, y1 = 0, x2 = 0, y2 = 0;  // the corners' pixels, inclusive
};

// A window file: its images, and their windows by kind.
struct WindowList {
  // An image file, with its size as listed.
  struct Image {
    std::string path;
    int32_t channels = 0, height = 0, width = 0;
  };
  std::vector<Image> images;
  std::vector<ImageWindow> foreground, background;
};

// A window is foreground from an overlap of `foreground_from`, else background below
// `background_below`. Throws kInvalidArgument, naming the image, for malformed text.
WindowList ReadWindowList(const std::string& uri, float foreground_from, float background_below);

}  // namespace hearth::caffe
