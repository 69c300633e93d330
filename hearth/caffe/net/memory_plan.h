// Shares memory between values and gradients of a net's blobs whose lifetimes do not overlap.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "hearth/caffe/net/net_graph.h"

namespace hearth::caffe {

// Memory of a net's values or gradients, without and with sharing.
struct MemoryPlan {
  int64_t blobs = 0;           // covered by the plan
  int64_t values = 0;          // blobs among these whose values are shared too
  int64_t separate_bytes = 0;  // without sharing
  int64_t planned_bytes = 0;   // with sharing
};

// Both are called once, after SetUp.
//
// A blob's gradient is in use from the backward step of the last layer that reads the blob to that
// of the layer that writes it; gradients that are not in use at the same time share memory. Diffs
// are then valid only while Backward runs. Blobs that share their diff with another one, loss tops
// and outputs of the net keep separate memory.
//
// The values of the blobs `freed` are unused once their last reader has run forward: they share the
// memory of the gradients, and are valid only while Forward runs.
MemoryPlan ShareDiffs(NetGraph& graph, const std::vector<int>& freed);

// For nets that only run forward: a blob's values are unused once the last layer has read them.
// Tops of layers without bottoms, loss tops, outputs of the net and the blobs `kept` keep separate
// memory.
MemoryPlan ShareData(NetGraph& graph, const std::vector<std::string>& kept);

}  // namespace hearth::caffe
