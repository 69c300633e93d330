// The values of a net's output blobs, concatenated: their sums over minibatches, and their lines in
// Caffe's log format.
#pragma once

#include <vector>

#include "hearth/caffe/net/net.h"

namespace hearth::caffe {

// Adds the values times `weight` to `sums`, which grows to their number.
void AddOutputs(Net& net, double weight, std::vector<double>* sums);

// `kind`: "Train" or "Test".
void LogOutputs(const char* kind, Net& net, const std::vector<double>& values);

}  // namespace hearth::caffe
