// The mean of the pictures in a database of Datum records.
#pragma once

#include <string>

#include "hearth/caffe/data/mean_file.h"
#include "hearth/caffe/proto/messages.h"

namespace hearth::caffe {

// Logs the mean of each channel too. Throws kDataLoss, naming the record, for one that is not a
// picture of the first one's size.
MeanPicture ComputeImageMean(DataParameter::DB backend, const std::string& database);

}  // namespace hearth::caffe
