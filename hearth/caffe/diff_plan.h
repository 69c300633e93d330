// Buffers for the gradients of a net's blobs, shared where lifetimes allow.
#pragma once

#include <cstdint>

#include "hearth/caffe/net_graph.h"

namespace hearth::caffe {

struct DiffPlan {
  int64_t blobs = 0;           // that got a place
  int64_t separate_bytes = 0;  // what they would take one by one
  int64_t planned_bytes = 0;   // what they take
};

// A blob's gradient is written by the last layer that reads the blob and dead once the layer that
// makes the blob has run backward; gradients that do not live at the same time get the same memory.
// After that, diffs hold their values only while Backward passes. Blobs that share their diff with
// another one, loss tops and outputs of the net keep memory of their own. Call it once, after
// SetUp.
DiffPlan ShareDiffs(NetGraph& graph);

}  // namespace hearth::caffe
