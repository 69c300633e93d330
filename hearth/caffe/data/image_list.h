// Reads the list files of ImageData and convert_imageset: an image's path and label per line.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace hearth::caffe {

// A line of a list file.
struct ListedImage {
  std::string path;  // as written in the file; may contain blanks
  int32_t label = 0;
};

// Throws kInvalidArgument "file:line: ..." for a line without a label, and for an empty list.
std::vector<ListedImage> ReadImageList(const std::string& uri);

// The lines of a text file without leading and trailing blanks. Empty lines are left out.
std::vector<std::string> ReadLines(const std::string& uri);

}  // namespace hearth::caffe
