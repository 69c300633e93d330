// ReLUs whose gradient the max pooling behind them gates, so that their values die early.
#pragma once

#include <vector>

#include "hearth/caffe/net_graph.h"

namespace hearth::caffe {

// Finds blobs that a ReLU works on in place and one max pooling reads, and nobody else. A pooled
// value is above zero just where the value that it was chosen from is: pooling gates the gradient
// of its top, a fraction of the size, and the ReLU passes on what it gets. So no layer's Backward
// reads such a blob's values any more. Tells the layers, and returns the blobs. Called once, after
// SetUp, where nobody looks at diffs between the layers.
std::vector<int> MoveReluGates(NetGraph& graph);

}  // namespace hearth::caffe
