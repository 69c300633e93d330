// Reads the list files of ImageData and convert_imageset: an image's path and label per line.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace hearth::caffe {

// A line of a list file.
struct ListedImage {
  std::string path;  // relative or absolute, as in the list file; may contain blanks
  int32_t label = 0;
};

// Reads a list file. Throws kInvalidArgument "file:line: ..." for a line without a label, and for
// an empty list.
std::vector<ListedImage> ReadImageList(const std::string& uri);

// Returns the lines of a text file, without leading and trailing blanks and without empty lines.
std::vector<std::string> ReadLines(const std::string& uri);

}  // namespace hearth::caffe
