// Which blobs of a net lie in memory with their channels last.
#pragma once

#include "hearth/caffe/net/net_graph.h"

namespace hearth::caffe {

// Gives Layout::kChannelsLast to blobs between layers that are faster that way, if every layer that
// touches them can take it. Inputs and outputs of the net stay row-major. Call it once, after
// SetUp.
void PlanLayouts(NetGraph& graph);

}  // namespace hearth::caffe
