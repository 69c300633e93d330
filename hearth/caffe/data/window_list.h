// The source of WindowData: images with windows that show an object or background.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace hearth::caffe {

// A window in one of the images of a WindowList.
struct ImageWindow {
  size_t image = 0;
  int32_t label = 0;                       // 0 for background
  int32_t x1 = 0, y1 = 0, x2 = 0, y2 = 0;  // first and last pixels of the window, inclusive
};

// The content of a window file: its images, and its windows by kind.
struct WindowList {
  // An image file, and its size according to the list.
  struct Image {
    std::string path;
    int32_t channels = 0, height = 0, width = 0;
  };
  std::vector<Image> images;
  std::vector<ImageWindow> foreground, background;
};

// Reads a window file. A window with an overlap of at least `foreground_from` is foreground;
// otherwise it is background if its overlap is less than `background_below`. Throws
// kInvalidArgument, naming the image, for malformed text.
WindowList ReadWindowList(const std::string& uri, float foreground_from, float background_below);

}  // namespace hearth::caffe
