// Builds trained nets for the tools.
#pragma once

#include <memory>
#include <string>

#include "hearth/caffe/net/net.h"

namespace hearth::caffe {

// The TEST net of a prototxt with the weights of a model; `context` has the device and threads.
// Throws like ReadNet() and LoadTrainedWeights().
std::unique_ptr<Net> TrainedTestNet(const std::string& net, const std::string& weights,
                                    NetContext context);

}  // namespace hearth::caffe
