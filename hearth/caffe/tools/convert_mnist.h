// Turns MNIST's files, or others of that form (idx), into databases of Datum records.
#pragma once

#include <cstdint>
#include <string>

#include "hearth/caffe/proto/messages.h"

namespace hearth::caffe {

struct MnistOptions {
  std::string images;    // idx of bytes: count, rows, columns
  std::string labels;    // idx of bytes: as many
  std::string database;  // to be made
  DataParameter::DB backend = DataParameter::LMDB;
};

// Both store records under their number in eight digits, return how many, and throw kDataLoss for a
// damaged file before a database is made.
int64_t ConvertMnist(const MnistOptions& options);
// For siamese nets: each record has two pictures as its channels, drawn at random, the same ones
// every time, and label 1 where theirs are the same, else 0. As many records as pictures.
int64_t ConvertMnistSiamese(const MnistOptions& options);

}  // namespace hearth::caffe
