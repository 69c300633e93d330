// Turns pictures that a list names into a database of Datum records, for Data layers.
#pragma once

#include <cstdint>
#include <string>

#include "hearth/caffe/proto/messages.h"

namespace hearth::caffe {

struct ConvertOptions {
  std::string root;      // put before every path of the list
  std::string list;      // lines "path label"
  std::string database;  // to be made
  DataParameter::DB backend = DataParameter::LMDB;
  bool gray = false;
  bool shuffle = false;           // into the same order every time
  int64_t height = 0, width = 0;  // of the stored pictures; 0: as they are
  bool check_size = false;        // all must have the same size
  bool encoded = false;           // store JPEG or PNG files instead of pixels
  std::string encode_type;        // which of them; empty: as the path's extension says
  int threads = 1;
};

// Pictures that cannot be read are named in the log and left out. Returns how many were stored.
int64_t ConvertImageset(const ConvertOptions& options);

}  // namespace hearth::caffe
