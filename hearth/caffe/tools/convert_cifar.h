// Converts CIFAR-10's binary files to databases of Datum records.
#pragma once

#include <string>

#include "hearth/caffe/proto/messages.h"

namespace hearth::caffe {

// Options of ConvertCifar.
struct CifarOptions {
  std::string input;   // folder with data_batch_1.bin to data_batch_5.bin and test_batch.bin
  std::string output;  // folder in which cifar10_train_BACKEND and cifar10_test_BACKEND are created
  DataParameter::DB backend = DataParameter::LMDB;
};

// Creates both databases, whose keys are record numbers with five digits. Throws kDataLoss for a
// damaged file before a database is created.
void ConvertCifar(const CifarOptions& options);

}  // namespace hearth::caffe
