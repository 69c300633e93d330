// Converts the images of a list to a database of Datum records, for Data layers.
#pragma once

#include <cstdint>
#include <string>

#include "hearth/caffe/proto/messages.h"

namespace hearth::caffe {

// Options of ConvertImageset.
struct ConvertOptions {
  std::string root;      // prefix of every path in the list
  std::string list;      // lines "path label"
  std::string database;  // created by the tool
  DataParameter::DB backend = DataParameter::LMDB;
  bool gray = false;
  bool shuffle = false;           // shuffles, in the same order every time
  int64_t height = 0, width = 0;  // size of the stored images; 0 keeps their size
  bool check_size = false;        // requires all images to have the same size
  bool encoded = false;           // stores JPEG or PNG files instead of pixels
  std::string encode_type;        // type to encode to; if empty, the path's extension decides
  int threads = 1;
};

// Converts the images. Logs and skips images that cannot be read. Returns the number of stored
// images.
int64_t ConvertImageset(const ConvertOptions& options);

}  // namespace hearth::caffe
