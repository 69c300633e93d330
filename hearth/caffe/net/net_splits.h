// Inserts Split layers for blobs with several readers.
#pragma once

#include "hearth/caffe/proto/messages.h"

namespace hearth::caffe {

// Inserts a Split layer, named as in Caffe, after every top that has more than one consumer, so
// that their gradients are summed. A loss_weight counts as a consumer and moves to the split.
// Throws kInvalidArgument if a bottom is not the top of an earlier layer.
NetParameter InsertSplits(const NetParameter& param);

}  // namespace hearth::caffe
