// Determines which layers run backward, and for which bottoms.
#pragma once

#include "hearth/caffe/net/net_graph.h"
#include "hearth/caffe/proto/messages.h"

namespace hearth::caffe {

// Sets need_backward and bottom_need_backward of every layer: backward runs where a gradient of a
// loss can reach a learned parameter, or everywhere with force_backward. `graph` must have been
// built from `param`.
void PlanBackward(const NetParameter& param, NetGraph* graph);

}  // namespace hearth::caffe
