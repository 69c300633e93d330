// Trained weights, from a file into a net.
#pragma once

#include <string>

#include "hearth/caffe/net/net.h"

namespace hearth::caffe {

// Reads a model and copies the weights of the layers that the net has, too, by name. An error names
// the file; where weights do not fit their layer it is a LayerError.
void LoadTrainedWeights(const std::string& uri, Net* net);

}  // namespace hearth::caffe
