// Sums the values of a net's outputs over minibatches, and logs them in Caffe's format. The values
// of all output blobs are concatenated.
#pragma once

#include <vector>

#include "hearth/caffe/net/net.h"

namespace hearth::caffe {

// Adds each output value, multiplied by `weight`, to `sums`, which is extended if needed.
void AddOutputs(Net& net, double weight, std::vector<double>* sums);

// `kind`: "Train" or "Test".
void LogOutputs(const char* kind, Net& net, const std::vector<double>& values);

}  // namespace hearth::caffe
