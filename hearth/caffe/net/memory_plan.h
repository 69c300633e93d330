// Lets the values and gradients of a net's blobs share memory if their lifetimes do not overlap.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "hearth/caffe/net/net_graph.h"

namespace hearth::caffe {

// The memory of a net's values or gradients, without and with sharing.
struct MemoryPlan {
  int64_t blobs = 0;           // number of blobs that the plan covers
  int64_t values = 0;          // set by ShareDiffs: number of blobs that share values, too
  int64_t separate_bytes = 0;  // without sharing
  int64_t planned_bytes = 0;   // with sharing
};

// ShareDiffs and ShareData are each called once, after SetUp.
//
// A blob's gradient is in use from the Backward of the last layer that reads the blob to the
// Backward of the layer that writes it. Gradients that are not in use at the same time share
// memory, so diffs are valid only while Backward runs. Blobs that share their diff with another
// blob, loss tops and outputs of the net keep separate memory.
//
// The values of the blobs in `freed` are not needed after their last reader has run Forward. They
// share the memory of the gradients, so they are valid only while Forward runs.
MemoryPlan ShareDiffs(NetGraph& graph, const std::vector<int>& freed);

// Lets the values of blobs share memory, in a net that only runs forward: a blob's values are not
// needed after the last layer has read them. Tops of layers without bottoms, loss tops, outputs of
// the net and the blobs in `kept` keep separate memory.
MemoryPlan ShareData(NetGraph& graph, const std::vector<std::string>& kept);

}  // namespace hearth::caffe
