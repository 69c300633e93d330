// Loads trained weights from a file into a net.
#pragma once

#include <string>

#include "hearth/caffe/net/net.h"

namespace hearth::caffe {

// Reads a model from a file and copies the weights of the layers whose names exist in the net.
// Errors name the file; a shape mismatch is a LayerError.
void LoadTrainedWeights(const std::string& uri, Net* net);

}  // namespace hearth::caffe
