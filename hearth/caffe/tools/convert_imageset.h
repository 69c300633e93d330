// Converts the images of a list to a database of Datum records, for Data layers.
#pragma once

#include <cstdint>
#include <string>

#include "hearth/caffe/proto/messages.h"

namespace hearth::caffe {

// Options of ConvertImageset.
struct ConvertOptions {
  std::string root;      // prefix of every path of the list
  std::string list;      // lines "path label"
  std::string database;  // to be created
  DataParameter::DB backend = DataParameter::LMDB;
  bool gray = false;
  bool shuffle = false;           // the same order every time
  int64_t height = 0, width = 0;  // of the stored images; 0: unchanged
  bool check_size = false;        // all must have the same size
  bool encoded = false;           // store JPEG or PNG files instead of pixels
  std::string encode_type;        // empty: by the path's extension
  int threads = 1;
};

// Images that cannot be read are logged by name and left out. Returns the number stored.
int64_t ConvertImageset(const ConvertOptions& options);

}  // namespace hearth::caffe
