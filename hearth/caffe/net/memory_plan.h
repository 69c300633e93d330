// Buffers for the values and gradients of a net's blobs, shared where lifetimes allow.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "hearth/caffe/net/net_graph.h"

namespace hearth::caffe {

struct MemoryPlan {
  int64_t blobs = 0;           // that the plan covers
  int64_t values = 0;          // of these, blobs whose values share the memory too
  int64_t separate_bytes = 0;  // what they would take one by one
  int64_t planned_bytes = 0;   // what they take
};

// Both are called once, after SetUp.
//
// A blob's gradient is written by the last layer that reads the blob and dead once the layer that
// makes the blob has run backward; gradients that do not live at the same time get the same memory.
// After that, diffs are valid only while Backward runs. Blobs that share their diff with
// another one, loss tops and outputs of the net keep memory of their own.
//
// The values of the blobs `freed` are dead once their last reader has run forward: they share the
// memory of the gradients, and are valid only while Forward runs.
MemoryPlan ShareDiffs(NetGraph& graph, const std::vector<int>& freed);

// For nets that only run forward: a blob's values are dead once the last layer has read them. What
// layers without bottoms make, loss tops, outputs of the net and the blobs `kept` keep memory of
// their own.
MemoryPlan ShareData(NetGraph& graph, const std::vector<std::string>& kept);

}  // namespace hearth::caffe
