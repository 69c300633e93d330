// Which layers run backward, and for which bottoms.
#pragma once

#include "hearth/caffe/net/net_graph.h"
#include "hearth/caffe/proto/messages.h"

namespace hearth::caffe {

// Sets need_backward and bottom_need_backward of every layer: backward runs where a gradient from a
// loss can reach a parameter that learns, or everywhere with force_backward. `param` is the one
// that `graph` was built from.
void PlanBackward(const NetParameter& param, NetGraph* graph);

}  // namespace hearth::caffe
