// Caffe's debug_info: the mean absolute value of everything that each layer computes, in Caffe's
// log format.
#pragma once

#include <functional>

#include "hearth/caffe/net/net.h"

namespace hearth::caffe {

// Logs while the net runs and `wanted` is true.
void LogDebugInfo(Net& net, std::function<bool()> wanted);

}  // namespace hearth::caffe
