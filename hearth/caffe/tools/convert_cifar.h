// Turns CIFAR-10's binary files into databases of Datum records.
#pragma once

#include <string>

#include "hearth/caffe/proto/messages.h"

namespace hearth::caffe {

struct CifarOptions {
  std::string input;   // folder with data_batch_1.bin to data_batch_5.bin and test_batch.bin
  std::string output;  // folder in which cifar10_train_BACKEND and cifar10_test_BACKEND are made
  DataParameter::DB backend = DataParameter::LMDB;
};

// Records have their number in five digits as key. Throws kDataLoss for a damaged file before a
// database is made.
void ConvertCifar(const CifarOptions& options);

}  // namespace hearth::caffe
