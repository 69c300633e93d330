// Split layers for blobs that several layers use.
#pragma once

#include "hearth/caffe/proto/messages.h"

namespace hearth::caffe {

// Inserts a Split layer, with Caffe's names, behind every top that has more than one consumer, so
// that their gradients are summed. A loss_weight counts as a consumer and moves to the split.
// Throws kInvalidArgument for a bottom that no earlier layer makes.
NetParameter InsertSplits(const NetParameter& param);

}  // namespace hearth::caffe
