// The list files of ImageData and convert_imageset: a picture's path and its label in each line.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace hearth::caffe {

struct ListedPicture {
  std::string path;  // as written there; may have blanks
  int32_t label = 0;
};

// Throws kInvalidArgument "file:line: ..." for a line without a label, and for an empty list.
std::vector<ListedPicture> ReadPictureList(const std::string& uri);

// The lines of a text file, without blanks around them and without empty ones.
std::vector<std::string> ReadLines(const std::string& uri);

}  // namespace hearth::caffe
