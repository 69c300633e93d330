// Moves the gradient gate of a ReLU (zero where its input is not positive) into the max pooling
// after it, so that the ReLU's output can be freed earlier.
#pragma once

#include <vector>

#include "hearth/caffe/net/net_graph.h"

namespace hearth::caffe {

// Finds blobs that a ReLU modifies in place, that one max pooling layer reads, and that no other
// layer uses, and returns them. A pooled value is a copy of one of the blob's values, so either
// both are positive or neither is. Pooling can therefore apply the gate to the gradient of its top,
// which is smaller, and the ReLU passes the gradient on unchanged. Then no layer's Backward reads
// the blob's values. Configures both layers accordingly. Must be called once, after SetUp, and only
// if diffs between layers are not observed.
std::vector<int> MoveReluGates(NetGraph& graph);

}  // namespace hearth::caffe
