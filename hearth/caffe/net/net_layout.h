// Chooses the blobs of a net that are stored with their channels last.
#pragma once

#include "hearth/caffe/net/net_graph.h"

namespace hearth::caffe {

// Sets Layout::kChannelsLast for blobs between layers that are faster with it, if every layer that
// uses them supports it. Inputs and outputs of the net stay row-major. Must be called once, after
// SetUp.
void PlanLayouts(NetGraph& graph);

}  // namespace hearth::caffe
