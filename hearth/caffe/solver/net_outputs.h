// The values of a net's output blobs, concatenated: sums them over minibatches, and logs them in
// Caffe's format.
#pragma once

#include <vector>

#include "hearth/caffe/net/net.h"

namespace hearth::caffe {

// Adds the output values, multiplied by `weight`, to `sums`, which is resized if it is shorter.
void AddOutputs(Net& net, double weight, std::vector<double>* sums);

// `kind`: "Train" or "Test".
void LogOutputs(const char* kind, Net& net, const std::vector<double>& values);

}  // namespace hearth::caffe
