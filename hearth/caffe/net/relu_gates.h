// Moves the gradient gates of ReLUs into the max pooling after them, which shortens value
// lifetimes.
#pragma once

#include <vector>

#include "hearth/caffe/net/net_graph.h"

namespace hearth::caffe {

// Finds blobs that a ReLU modifies in place, that one max pooling reads, and that no other layer
// uses. A pooled value repeats the value it was chosen from, so both are positive or neither is.
// Pooling can therefore gate the gradient of its top, which is smaller, and the ReLU passes its
// gradient through: no layer's Backward reads the blob's values any more. Configures the layers,
// and returns the blobs. Called once, after SetUp, and only if diffs between layers are not
// observed.
std::vector<int> MoveReluGates(NetGraph& graph);

}  // namespace hearth::caffe
