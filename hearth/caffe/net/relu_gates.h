// ReLUs whose gradient the max pooling behind them gates, so that their values die early.
#pragma once

#include <vector>

#include "hearth/caffe/net/net_graph.h"

namespace hearth::caffe {

// Finds blobs that a ReLU works on in place, that one max pooling reads, and that no other layer
// uses. A pooled value repeats the value it was chosen from, so both are above zero or neither is.
// Pooling can therefore gate the gradient of its top, which is smaller, and the ReLU passes on what
// it gets: no layer's Backward reads the blob's values any more. Tells the layers, and returns the
// blobs. Called once, after SetUp, and only where nobody looks at diffs between the layers.
std::vector<int> MoveReluGates(NetGraph& graph);

}  // namespace hearth::caffe
