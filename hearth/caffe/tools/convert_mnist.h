// Converts MNIST files, or other files in the idx format, to databases of Datum records.
#pragma once

#include <cstdint>
#include <string>

#include "hearth/caffe/proto/messages.h"

namespace hearth::caffe {

// Options of ConvertMnist and ConvertMnistSiamese.
struct MnistOptions {
  std::string images;    // idx file of bytes: count, rows, columns
  std::string labels;    // idx file of bytes: the same count
  std::string database;  // created by the tool
  DataParameter::DB backend = DataParameter::LMDB;
};

// ConvertMnist and ConvertMnistSiamese use record numbers with eight digits as keys, return the
// number of records, and throw kDataLoss for a damaged file before a database is created.
int64_t ConvertMnist(const MnistOptions& options);
// Creates a database for siamese nets. The two channels of each record are two randomly chosen
// images, which are the same in every run. The label is 1 if both images have the same label,
// otherwise 0. There are as many records as images.
int64_t ConvertMnistSiamese(const MnistOptions& options);

}  // namespace hearth::caffe
