// Converts MNIST files, or others in the idx format, to databases of Datum records.
#pragma once

#include <cstdint>
#include <string>

#include "hearth/caffe/proto/messages.h"

namespace hearth::caffe {

// Options of ConvertMnist and ConvertMnistSiamese.
struct MnistOptions {
  std::string images;    // idx of bytes: count, rows, columns
  std::string labels;    // idx of bytes: as many
  std::string database;  // to be created
  DataParameter::DB backend = DataParameter::LMDB;
};

// Both use record numbers of eight digits as keys, return the number of records, and throw
// kDataLoss for a damaged file before a database is created.
int64_t ConvertMnist(const MnistOptions& options);
// For siamese nets: each record has two randomly chosen images as its channels, the same choice
// every time, and label 1 if their labels are equal, else 0. As many records as images.
int64_t ConvertMnistSiamese(const MnistOptions& options);

}  // namespace hearth::caffe
