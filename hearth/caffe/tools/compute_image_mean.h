// Computes the mean of the images in a database of Datum records.
#pragma once

#include <string>

#include "hearth/caffe/data/mean_file.h"
#include "hearth/caffe/proto/messages.h"

namespace hearth::caffe {

// Computes the mean image of a database, and logs the mean of each channel. Throws kDataLoss,
// naming the record, if a record is not an image or does not have the size of the first image.
MeanImage ComputeImageMean(DataParameter::DB backend, const std::string& database);

}  // namespace hearth::caffe
