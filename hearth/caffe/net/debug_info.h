// Implements Caffe's debug_info: logs the mean absolute value of everything that each layer
// computes, in Caffe's format.
#pragma once

#include <functional>

#include "hearth/caffe/net/net.h"

namespace hearth::caffe {

// Makes the net log its debug lines while it runs, whenever `wanted` returns true.
void LogDebugInfo(Net& net, std::function<bool()> wanted);

}  // namespace hearth::caffe
