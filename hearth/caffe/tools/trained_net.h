// Builds trained nets for the tools.
#pragma once

#include <memory>
#include <string>

#include "hearth/caffe/net/net.h"

namespace hearth::caffe {

// Builds the TEST net of a prototxt and loads the weights of a model. `context` specifies the
// device and the threads. Throws like ReadNet() and LoadTrainedWeights().
std::unique_ptr<Net> TrainedTestNet(const std::string& net, const std::string& weights,
                                    NetContext context);

}  // namespace hearth::caffe
