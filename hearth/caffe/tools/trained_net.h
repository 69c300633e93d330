// The nets that the tools apply.
#pragma once

#include <memory>
#include <string>

#include "hearth/caffe/net/net.h"

namespace hearth::caffe {

// The TEST net of a prototxt with the weights of a model; `context` says the device and threads.
// Throws as ReadNet() and LoadTrainedWeights() do.
std::unique_ptr<Net> TrainedTestNet(const std::string& net, const std::string& weights,
                                    NetContext context);

}  // namespace hearth::caffe
